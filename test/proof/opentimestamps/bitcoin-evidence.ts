/** Evidence of OpenTimestamps over a checkpoint, and the block that confirms it. */
import type { JsonObject } from '@bufbuild/protobuf';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { checkpointDigest, parseCheckpoint } from '../../../src/proof/log/checkpoint.js';
import type { Attestation } from '../../../src/proof/opentimestamps/attestation.js';
import { toDisplayHex } from '../../../src/proof/opentimestamps/block-header.js';
import {
  checkpointTimestamp,
  digestToSubmit,
} from '../../../src/proof/opentimestamps/checkpoint-timestamp.js';
import { encodeOts } from '../../../src/proof/opentimestamps/detached-file.js';
import { append, applyOperation, prepend, SHA256 } from '../../../src/proof/opentimestamps/operation.js';
import {
  makeTimestamp,
  type Timestamp,
  timestampAfter,
} from '../../../src/proof/opentimestamps/timestamp.js';
import { mineHeader } from '../../support/witnesses/opentimestamps/block.js';

export const HEIGHT = 850_000;
export const MINED_AT = new Date('2025-06-07T14:00:00.000Z');
const NONCE = new Uint8Array(16).fill(1);
const OPERATIONS = [prepend(sha256(NONCE)), SHA256, append(sha256(NONCE)), SHA256, SHA256];

/** `headers` are those of the block, by height, as a verifier is given them. */
export type BitcoinEvidence = {
  evidence: Uint8Array;
  detail: JsonObject;
  merkleRoot: Uint8Array;
  headers: Map<number, Uint8Array>;
};

/** Evidence over a checkpoint's note. The same note has the same evidence. */
export function bitcoinEvidence(note: string): BitcoinEvidence {
  const submitted = digestToSubmit(hashesOf(note), NONCE);
  const merkleRoot = OPERATIONS.reduce((value, operation) => applyOperation(operation, value), submitted);
  return {
    evidence: encodeOts(timestampOver(note, { kind: 'bitcoin', height: HEIGHT })),
    detail: {
      status: 'bitcoin',
      bitcoin_height: HEIGHT,
      bitcoin_merkle_root: toDisplayHex(merkleRoot),
    },
    merkleRoot,
    headers: new Map([[HEIGHT, mineHeader(merkleRoot, MINED_AT.getTime() / 1_000)]]),
  };
}

/** The timestamp of a checkpoint's digest that ends in these attestations. */
export function timestampOver(note: string, ...attestations: Attestation[]): Timestamp {
  const hashes = hashesOf(note);
  const ofDigest = timestampAfter(digestToSubmit(hashes, NONCE), OPERATIONS, (root) =>
    makeTimestamp(root, attestations),
  );
  return checkpointTimestamp(hashes, NONCE, ofDigest);
}

function hashesOf(note: string) {
  const { rootHash, note: parsed } = parseCheckpoint(note);
  return { rootHash, digest: checkpointDigest(parsed.text) };
}
