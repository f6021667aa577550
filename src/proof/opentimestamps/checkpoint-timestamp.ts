/**
 * Timestamps of checkpoints and of the leaves under them. No operation makes a checkpoint body of a root, because the body
 * has the root in base64. So what calendars get is SHA-256(root ‖ digest): operations lead to it from the checkpoint's
 * digest as well as from each leaf.
 */
import { FormatError } from '../bytes/format-error.js';
import { equalBytes, sha256 } from '../bytes/primitives.js';
import type { Attestation } from './attestation.js';
import { inclusionOperations } from './inclusion-path.js';
import { append, compareOperations, type Operation, prepend, SHA256 } from './operation.js';
import {
  attestationsOf,
  makeTimestamp,
  mergeTimestamps,
  type Timestamp,
  timestampAfter,
} from './timestamp.js';

/** A checkpoint's root, and the SHA-256 of its body. */
type CheckpointHashes = { readonly rootHash: Uint8Array; readonly digest: Uint8Array };

/** A leaf's inclusion in the tree of `size` leaves. */
type Inclusion = {
  readonly leafHash: Uint8Array;
  readonly index: number;
  readonly size: number;
  readonly proof: readonly Uint8Array[];
};

/** A Bitcoin attestation: `merkleRoot` is that of the block at `height` if it is true. */
export type BitcoinAttestation = {
  readonly height: number;
  readonly merkleRoot: Uint8Array;
  readonly attestation: Attestation;
};

const MERKLE_ROOT_BYTES = 32;

/** The commitment for calendars: SHA-256(SHA-256(root ‖ digest) ‖ nonce). */
export function digestToSubmit({ rootHash, digest }: CheckpointHashes, nonce: Uint8Array): Uint8Array {
  return sha256(sha256(rootHash, digest), nonce);
}

/**
 * Creates the timestamp of a checkpoint's digest from that of the submitted digest. Throws FormatError if `submitted` is
 * of another digest.
 */
export function checkpointTimestamp(
  { rootHash, digest }: CheckpointHashes,
  nonce: Uint8Array,
  submitted: Timestamp,
): Timestamp {
  const operations = [prepend(rootHash), SHA256, append(nonce), SHA256];
  return timestampAfter(digest, operations, (message) =>
    mergeTimestamps(makeTimestamp(message, []), submitted),
  );
}

/** Finds the digest that the calendars got, in a checkpoint's timestamp. Returns undefined if it is not of this form. */
export function findSubmitted(timestamp: Timestamp, rootHash: Uint8Array): Uint8Array | undefined {
  const [nonced] = findStep(findStep(timestamp, prepend(rootHash)), SHA256)?.steps ?? [];
  return findStep(nonced?.timestamp, SHA256)?.message;
}

/**
 * Derives the timestamp of a leaf hash from that of its checkpoint. Returns undefined if that one does not begin with
 * SHA-256(root ‖ digest). Throws FormatError if the inclusion proof does not lead to this root.
 */
export function leafTimestamp(
  { leafHash, index, size, proof }: Inclusion,
  { rootHash, digest }: CheckpointHashes,
  timestamp: Timestamp,
): Timestamp | undefined {
  const combined = findStep(findStep(timestamp, prepend(rootHash)), SHA256);
  if (combined === undefined) return undefined;
  const operations = [...inclusionOperations(index, size, proof), append(digest), SHA256];
  return timestampAfter(leafHash, operations, (message) => {
    if (equalBytes(message, combined.message)) return combined;
    throw new FormatError('an inclusion proof leads to another root');
  });
}

/** Lists the Bitcoin attestations of hashes in a timestamp, lowest block first. */
export function bitcoinAttestations(timestamp: Timestamp): BitcoinAttestation[] {
  return attestationsOf(timestamp)
    .flatMap(({ message, attestation }) =>
      attestation.kind === 'bitcoin' && message.length === MERKLE_ROOT_BYTES
        ? [{ height: attestation.height, merkleRoot: message, attestation }]
        : [],
    )
    .sort((a, b) => a.height - b.height);
}

function findStep(timestamp: Timestamp | undefined, wanted: Operation): Timestamp | undefined {
  return timestamp?.steps.find(({ operation }) => compareOperations(operation, wanted) === 0)?.timestamp;
}
