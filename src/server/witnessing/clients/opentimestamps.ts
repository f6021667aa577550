/** A witness that is a set of OpenTimestamps calendars, which commit to checkpoints in the Bitcoin blockchain. */
import type { JsonObject } from '@bufbuild/protobuf';
import { fromHex, toHex } from '../../../proof/bytes/encoding.js';
import { equalBytes, sha256 } from '../../../proof/bytes/primitives.js';
import { parseBlockHeader, toDisplayHex } from '../../../proof/opentimestamps/block-header.js';
import {
  type BitcoinAttestation,
  bitcoinAttestations,
  checkpointTimestamp,
  digestToSubmit,
  findSubmitted,
} from '../../../proof/opentimestamps/checkpoint-timestamp.js';
import { encodeOts, parseOtsOf } from '../../../proof/opentimestamps/detached-file.js';
import {
  attestationsOf,
  makeTimestamp,
  pathTo,
  type Timestamp,
} from '../../../proof/opentimestamps/timestamp.js';
import { fetchBlockHeader } from './block-headers.js';
import type { RequestDeps } from './bounded-request.js';
import { addAnswers, type CalendarsConfig, fetchUpgrades, submitTo, type Upgrade } from './calendar-calls.js';
import {
  acceptedCalendars,
  type CalendarOutcome,
  type CalendarState,
  failuresText,
  pendingDetail,
} from './calendar-states.js';
import type {
  CheckpointToWitness,
  PendingRequest,
  PollAnswer,
  Witness,
  WitnessAnswer,
  WitnessedCheckpoint,
} from './witness.js';

type OpenTimestampsDeps = RequestDeps & { readonly randomBytes: (size: number) => Uint8Array };

type OpenTimestampsConfig = CalendarsConfig & {
  readonly name: string;
  /** How many calendars must accept a request. */
  readonly min: number;
  /** The base of an Esplora API that confirms blocks, without a slash at the end. */
  readonly explorerUrl?: string | undefined;
};

const NONCE_BYTES = 16;
/** How many blocks are looked up at most by one poll. */
const MAX_BLOCKS = 8;
const FIRST_POLL_MS = 60_000;
const LAST_POLL_MS = 60 * 60_000;
/** Calendars commit within a day. One that has not after this time has lost the request. */
const MAX_AGE_MS = 30 * 24 * 60 * 60_000;

/**
 * Creates a witness. `ask` submits to all calendars at once and is pending when enough of them have accepted. `poll`
 * fetches what they have made of it, submits again where that failed, and lands with the first Bitcoin attestation, or
 * abandons the request after 30 days. The
 * state is the .ots file with every branch, the evidence one with the path to that attestation alone.
 */
export function openTimestampsWitness(deps: OpenTimestampsDeps, config: OpenTimestampsConfig): Witness {
  return {
    name: config.name,
    kind: 'opentimestamps',
    ask: (checkpoint, signal) => submit(deps, config, checkpoint, signal),
    poll: (request, signal) => poll(deps, config, request, signal),
  };
}

async function submit(
  deps: OpenTimestampsDeps,
  config: OpenTimestampsConfig,
  { body, rootHash }: WitnessedCheckpoint,
  signal: AbortSignal,
): Promise<WitnessAnswer> {
  const nonce = deps.randomBytes(NONCE_BYTES);
  const hashes = { rootHash: fromHex(rootHash, 32), digest: sha256(body) };
  const digest = digestToSubmit(hashes, nonce);
  const answers = await submitTo(deps, config, config.calendars, digest, signal);
  const empty = checkpointTimestamp(hashes, nonce, makeTimestamp(digest, []));
  const { timestamp, outcomes } = addAnswers(empty, answers);
  const accepted = outcomes.filter((outcome) => 'value' in outcome).length;
  if (accepted < config.min) {
    const found = `${accepted} of the ${config.min} calendars needed`;
    throw new Error(`only ${found} accepted the request: ${failuresText(outcomes)}`);
  }
  return {
    type: 'pending',
    state: encodeOts(timestamp),
    detail: pendingDetail(outcomes.map(submissionState)),
    pollAfterMs: FIRST_POLL_MS,
  };
}

async function poll(
  deps: OpenTimestampsDeps,
  config: OpenTimestampsConfig,
  { checkpoint, state, detail, ageMs }: PendingRequest,
  signal: AbortSignal,
): Promise<PollAnswer> {
  const before = parseOtsOf(sha256(checkpoint.body), state);
  const upgrades = addAnswers(before, await fetchUpgrades(deps, config, before, signal));
  const found = await findLanded(deps, config, upgrades.timestamp, signal);
  if (found !== undefined) return found;

  const accepted = acceptedCalendars(detail).filter((url) => config.calendars.includes(url));
  const missing = config.calendars.filter((url) => !accepted.includes(url));
  const digest = getSubmitted(before, checkpoint);
  const submitted = addAnswers(upgrades.timestamp, await submitTo(deps, config, missing, digest, signal));
  const outcomes = [...upgrades.outcomes, ...submitted.outcomes];
  if (outcomes.length === 0) return { type: 'abandoned', reason: noCalendarText(before) };
  if (ageMs > MAX_AGE_MS)
    return { type: 'abandoned', reason: 'no Bitcoin block attests to it after 30 days' };
  if (!outcomes.some((outcome) => 'value' in outcome)) throw new Error(failuresText(outcomes));
  return {
    type: 'pending',
    state: encodeOts(submitted.timestamp),
    detail: pendingDetail([
      ...accepted.map((url) => upgradeState(url, upgrades.outcomes)),
      ...submitted.outcomes.map(submissionState),
    ]),
    pollAfterMs: nextPollMs(ageMs),
  };
}

function getSubmitted(timestamp: Timestamp, { rootHash }: CheckpointToWitness): Uint8Array {
  const submitted = findSubmitted(timestamp, fromHex(rootHash, 32));
  if (submitted === undefined) throw new Error('the stored request is of another checkpoint');
  return submitted;
}

/**
 * The evidence of the lowest block. With a block explorer its header is in `detail`, and blocks with another Merkle root
 * do not count. Throws if those are all.
 */
async function findLanded(
  deps: OpenTimestampsDeps,
  { explorerUrl: url, timeoutMs }: OpenTimestampsConfig,
  timestamp: Timestamp,
  signal: AbortSignal,
): Promise<PollAnswer | undefined> {
  const attestations = bitcoinAttestations(timestamp).slice(0, MAX_BLOCKS);
  const [lowest] = attestations;
  if (lowest === undefined || url === undefined) return lowest && landed(timestamp, lowest);
  for (const attestation of attestations) {
    const header = await fetchBlockHeader(deps, { url, timeoutMs }, attestation.height, signal);
    if (equalBytes(parseBlockHeader(header).merkleRoot, attestation.merkleRoot)) {
      return landed(timestamp, attestation, { bitcoin_header: toHex(header) });
    }
  }
  const heights = attestations.map(({ height }) => height).join(', ');
  throw new Error(`a calendar names block ${heights}, which has another Merkle root`);
}

function landed(
  timestamp: Timestamp,
  { attestation, height, merkleRoot }: BitcoinAttestation,
  header: JsonObject = {},
): PollAnswer {
  const path = pathTo(timestamp, attestation);
  if (path === undefined) throw new Error('an attestation is not in its timestamp');
  const bitcoin_merkle_root = toDisplayHex(merkleRoot);
  const detail = { status: 'bitcoin', bitcoin_height: height, bitcoin_merkle_root, ...header };
  return { type: 'landed', evidence: encodeOts(path), detail };
}

function submissionState(outcome: CalendarOutcome<unknown>): CalendarState {
  const { url } = outcome;
  return 'failure' in outcome
    ? { url, status: 'failed', reason: outcome.failure }
    : { url, status: 'pending' };
}

function upgradeState(url: string, upgrades: readonly CalendarOutcome<Upgrade>[]): CalendarState {
  const own = upgrades.find((upgrade) => upgrade.url === url);
  if (own === undefined) return { url, status: 'pending' };
  if ('failure' in own) return { url, status: 'pending', reason: own.failure };
  const reason = 'isPending' in own.value ? own.value.reason : '';
  return { url, status: 'pending', ...(reason !== '' && { reason }) };
}

function noCalendarText(timestamp: Timestamp): string {
  const uris = attestationsOf(timestamp).flatMap(({ attestation }) =>
    attestation.kind === 'pending' ? [attestation.uri.slice(0, 100)] : [],
  );
  return `the calendars that have this request are not among the calendars of this witness: ${uris.slice(0, 5).join(', ')}`;
}

/** As long as the request is old, from a minute to an hour: so the interval doubles. */
function nextPollMs(ageMs: number): number {
  return Math.min(LAST_POLL_MS, Math.max(FIRST_POLL_MS, ageMs));
}
