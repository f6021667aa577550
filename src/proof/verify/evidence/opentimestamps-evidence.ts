/**
 * Evidence of OpenTimestamps: an .ots file over SHA-256 of the checkpoint body. It is checked against block headers that the
 * verifier trusts. Calendars prove nothing: a pending attestation does not count.
 */
import type { JsonObject } from '@bufbuild/protobuf';
import { fromHex } from '../../bytes/encoding.js';
import { FormatError } from '../../bytes/format-error.js';
import { equalBytes } from '../../bytes/primitives.js';
import { checkpointDigest } from '../../log/checkpoint.js';
import {
  type BlockHeader,
  latestTimeOf,
  parseBlockHeader,
  toDisplayHex,
} from '../../opentimestamps/block-header.js';
import { type BitcoinAttestation, bitcoinAttestations } from '../../opentimestamps/checkpoint-timestamp.js';
import { encodeOts, parseOtsOf } from '../../opentimestamps/detached-file.js';
import { attestationsOf, type Timestamp } from '../../opentimestamps/timestamp.js';
import { notChecked } from '../report.js';
import type { Trust } from '../trust.js';
import {
  agrees,
  detailMismatch,
  type Evidence,
  type EvidenceSources,
  type Finding,
  refuted,
  unknownWitness,
  vouched,
} from './evidence.js';

/**
 * Checks a timestamp against the given block headers: each that is given for one of its heights must confirm it. The trust
 * roots only say whose names are those of OpenTimestamps; whether the calendars were trusted then makes no difference.
 */
export function checkOpenTimestamps(
  evidence: Evidence,
  trust: Trust,
  { bitcoinHeaders }: EvidenceSources,
): Finding {
  if (!trust.calendars.some(({ name }) => name === evidence.witness.name)) return unknownWitness(evidence);
  try {
    const timestamp = readTimestamp(evidence);
    const attestations = bitcoinAttestations(timestamp);
    const [lowest] = attestations;
    if (lowest === undefined) return checkPending(evidence, timestamp);
    const carried = findCarriedHeader(evidence, lowest);
    const detail = { ...detailOf(lowest), ...carried?.member };
    if (!agrees(evidence.witness, detail)) return detailMismatch(evidence);
    const given = attestations.flatMap((attestation) => {
      const header = bitcoinHeaders?.get(attestation.height);
      return header === undefined ? [] : [{ attestation, header }];
    });
    return given.length === 0
      ? unchecked(evidence, lowest, carried?.hash)
      : checkBlocks(evidence, given, detail);
  } catch (error) {
    if (error instanceof FormatError) return refuted(evidence, 'malformed', error.message);
    throw error;
  }
}

/** Evidence has exactly one accepted encoding. */
function readTimestamp({ witness, checkpoint }: Evidence): Timestamp {
  const timestamp = parseOtsOf(checkpointDigest(checkpoint.note.text), witness.evidence);
  if (!equalBytes(encodeOts(timestamp), witness.evidence)) {
    throw new FormatError('the .ots file is not in canonical order');
  }
  return timestamp;
}

function checkPending(evidence: Evidence, timestamp: Timestamp): Finding {
  const uris = attestationsOf(timestamp).flatMap(({ attestation }) =>
    attestation.kind === 'pending' ? [attestation.uri] : [],
  );
  if (uris.length === 0) return refuted(evidence, 'no_attestation', 'no Bitcoin block is named');
  const message = `${evidence.witness.name} has the promise of ${uris[0]} only, which proves nothing`;
  return { check: notChecked('witness.pending', message) };
}

type GivenBlock = { readonly attestation: BitcoinAttestation; readonly header: Uint8Array };

/** Every given header must confirm its attestation. The earliest block proves the time. */
function checkBlocks(evidence: Evidence, given: readonly GivenBlock[], detail: JsonObject): Finding {
  const blocks = given.map(({ attestation, header }) => ({ ...attestation, found: findHeader(header) }));
  const wrong = blocks.find(({ merkleRoot, found }) => !found || !equalBytes(merkleRoot, found.merkleRoot));
  if (wrong !== undefined) {
    const problem = wrong.found === undefined ? 'no valid proof of work' : 'another Merkle root';
    const message = `the given header of Bitcoin block ${wrong.height} has ${problem}`;
    return refuted(evidence, 'wrong_block', message);
  }
  const confirmed = blocks.flatMap(({ height, found }) =>
    found === undefined ? [] : [{ height, ...found }],
  );
  const earliest = confirmed.reduce((first, block) => (block.time < first.time ? block : first));
  const finding = vouched(evidence, latestTimeOf(earliest), detail);
  if (finding.check.status !== 'passed') return finding;
  const { message } = finding.check;
  const proof = `Bitcoin block ${earliest.height} (${earliest.hash}) commits to the checkpoint`;
  return { ...finding, check: { ...finding.check, message: `${message}: ${proof}` } };
}

function unchecked(
  { witness }: Evidence,
  { height, merkleRoot }: BitcoinAttestation,
  hash?: string,
): Finding {
  const claim = `${witness.name} says that Bitcoin block ${height} commits to the checkpoint`;
  const root = `the block’s Merkle root must be ${toDisplayHex(merkleRoot)}`;
  const message = `${claim}: not checked without that block’s header; ${root}`;
  const carried = hash === undefined ? '' : `, its hash ${hash}, as the bundle’s copy of the header`;
  return { check: notChecked('witness.no_block_header', `${message}${carried}`) };
}

/** The members of `detail` that the evidence confirms. */
function detailOf({ height, merkleRoot }: BitcoinAttestation): JsonObject {
  return { status: 'bitcoin', bitcoin_height: height, bitcoin_merkle_root: toDisplayHex(merkleRoot) };
}

/**
 * The header in `detail`, if it is one of a block with this Merkle root. It proves nothing by itself: anyone can mine one
 * with an easy target.
 */
function findCarriedHeader({ witness }: Evidence, { merkleRoot }: BitcoinAttestation) {
  const { bitcoin_header: text } = witness.detail ?? {};
  if (typeof text !== 'string' || !/^[0-9a-f]{160}$/.test(text)) return undefined;
  const header = findHeader(fromHex(text));
  if (header === undefined || !equalBytes(header.merkleRoot, merkleRoot)) return undefined;
  return { hash: header.hash, member: { bitcoin_header: text } };
}

function findHeader(bytes: Uint8Array): BlockHeader | undefined {
  try {
    return parseBlockHeader(bytes);
  } catch (error) {
    if (error instanceof FormatError) return undefined;
    throw error;
  }
}
