import {
  type BatchCreateAttestationsResponse,
  ItemOutcome,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { toHex } from '../../../proof/bytes/encoding.js';
import { type Call, getPrincipal, type SerializedResponse } from '../../core/call.js';
import { type ApiError, deadlineExceeded } from '../../core/errors.js';
import { findEarlierRequests, keyReused } from '../../idempotency/idempotency.js';
import {
  type NewSubmission,
  type SequencedRow,
  SubmissionOutcome,
} from '../sequence/sequence-submissions.js';
import { submissionView } from '../submissions/submission-message.js';
import { type CheckedItem, checkItems, isSameRequest, type Repeat, splitRepeats } from './batch-checks.js';
import { batchResponse, type ItemResult } from './batch-response.js';
import { type CreateDeps, recordUse, windowSpent } from './create-attestation.js';
import {
  newSubmission,
  type SignedStatement,
  stateSubmission,
  storedView,
  submitterOf,
} from './new-submission.js';
import { created, fitProblems, type ResponseBudget, replayed, responseBudget } from './response-budget.js';

/** Dependencies of {@link batchCreateAttestations}. */
export type BatchCreateDeps = CreateDeps & {
  /** The error of an item, made of any thrown value; one that is no `ApiError` is logged, and the caller gets the request id. */
  asApiError: (error: unknown, requestId: string) => ApiError;
};

/** A batch in progress; results by the items' places. */
type Batch = { deps: BatchCreateDeps; call: Call; results: ItemResult[]; budget: ResponseBudget };

/**
 * Items that are signed and written together. The next ones are queued when these are durable, so that a batch delays the
 * submissions of others by little.
 */
const SLICE = 250;
/** Submissions that are read together to be replayed: each may have 128 KiB. */
const READ_TOGETHER = 50;
/** An item that fails counts as one read for each started block of this size. */
const BYTES_OF_A_READ = 1024;

/**
 * Creates the submissions of a batch. First every item is read and checked, so that a request that cannot be read is
 * rejected before anything is stored. Then the items are signed and stored in slices. Commit points: the sequencer's
 * transactions.
 */
export async function batchCreateAttestations(
  deps: BatchCreateDeps,
  call: Call,
): Promise<SerializedResponse<BatchCreateAttestationsResponse>> {
  const { passed, errors, bytes } = await checkItems(deps, call);
  const batch: Batch = { deps, call, results: new Array(bytes.length), budget: responseBudget(bytes) };
  for (const [index, error] of errors) batch.results[index] = { error };
  const { firsts, repeats } = splitRepeats(passed);
  for (let at = 0; at < firsts.length; at += SLICE) {
    if (call.signal().aborted) throw deadlineExceeded();
    await storeSlice(batch, firsts.slice(at, at + SLICE));
  }
  await settleRepeats(batch, repeats);
  call.tally.due = countReads(batch, bytes);
  call.hasChanged = batch.results.some(({ outcome }) => outcome === ItemOutcome.CREATED);
  return batchResponse(
    fitProblems(batch.budget, batch.results),
    getPrincipal(call).environment,
    call.requestId,
  );
}

/** Gives items under the key of an earlier one their results. */
async function settleRepeats(batch: Batch, repeats: readonly Repeat[]): Promise<void> {
  const { results, budget } = batch;
  const reused: CheckedItem[] = [];
  for (const repeat of repeats) {
    const { item, first } = repeat;
    const result = results[first.index] as ItemResult;
    const isSame = isSameRequest(repeat);
    if (result.error?.code === ErrorCode.IDEMPOTENCY_KEY_REUSED && !isSame) reused.push(item);
    else if (result.error !== undefined) results[item.index] = result;
    else results[item.index] = isSame ? replayed(budget, item, result.shown) : { error: keyReused() };
  }
  if (reused.length > 0) await orFail(batch, reused, () => settleReused(batch, reused));
}

/** Signs and stores items, up to what the rate windows admit. They have their results then. */
async function storeSlice(batch: Batch, slice: readonly CheckedItem[]): Promise<void> {
  await orFail(batch, slice, async () => {
    const admitted = await admitItems(batch, slice);
    if (admitted.length > 0) await storeRows(batch, admitted, await signItems(batch, admitted));
  });
}

/** If the work fails, so do the items that have no result. */
async function orFail(
  { deps, call, results }: Batch,
  items: readonly CheckedItem[],
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    const error = deps.asApiError(thrown, call.requestId);
    for (const { index } of items) results[index] ??= { error };
  }
}

/**
 * The items that are to be written: all that the windows, as last seen, have room for. Of the others those with a known
 * key are replayed, and the rest is refused without being signed.
 */
async function admitItems(batch: Batch, slice: readonly CheckedItem[]): Promise<readonly CheckedItem[]> {
  const { deps, call, results } = batch;
  const room =
    call.tally.room === 'replays' ? 0 : Math.min(...call.rateStates.map(({ remaining }) => remaining));
  if (slice.length <= room) return slice;
  const unknown = await settleEarlier(batch, slice);
  for (const { index } of unknown.slice(room)) results[index] = { error: windowSpent(deps, call) };
  return unknown.slice(0, room);
}

/** Looks up the items' keys: replays or refuses those that were used before. Returns the other items. */
async function settleEarlier(batch: Batch, items: readonly CheckedItem[]): Promise<CheckedItem[]> {
  const { deps, call, results } = batch;
  const requests = items.flatMap(({ keyed }) => keyed ?? []);
  const claims = await findEarlierRequests(deps.idempotency, call, requests);
  const replays: Replay[] = [];
  const unknown: CheckedItem[] = [];
  for (const item of items) {
    const claim = item.keyed && claims.get(item.keyed);
    if (claim === undefined) unknown.push(item);
    else if (claim.outcome === 'reused') results[item.index] = { error: keyReused() };
    else replays.push({ item, id: claim.resourceId });
  }
  await replay(batch, replays);
  return unknown;
}

/** An item whose submission exists. */
type Replay = { item: CheckedItem; id: string | null };

async function replay({ deps, results, budget }: Batch, replays: readonly Replay[]): Promise<void> {
  for (let at = 0; at < replays.length; at += READ_TOGETHER) {
    const together = replays.slice(at, at + READ_TOGETHER);
    const rows = await Promise.all(
      together.map(({ id }) => (id === null ? undefined : deps.findSubmission(id))),
    );
    for (const [i, { item, id }] of together.entries()) {
      const row = rows[i];
      if (row === undefined) throw new Error(`the idempotency key's submission ${id} is missing`);
      results[item.index] = replayed(budget, item, submissionView(row));
    }
  }
}

/** Makes the rows of items, with one hand-over to the signing threads. */
async function signItems({ deps, call }: Batch, items: readonly CheckedItem[]): Promise<NewSubmission[]> {
  const principal = getPrincipal(call);
  const signer = await deps.signers.get(principal.environment);
  const submitter = submitterOf(principal);
  const stated = items.map(({ submission }) => stateSubmission(deps, submission, submitter));
  const signed = await signer.signMany(stated.map(({ statement }) => statement.text));
  return stated.map((one, i) => {
    const { keyed } = items[i] as CheckedItem;
    const [requestHash] = keyed?.requestHashes ?? [];
    const idempotency = keyed && requestHash && { key: keyed.key, requestHash: toHex(requestHash) };
    return newSubmission(one, signed[i] as SignedStatement, signer.keyId, submitter, idempotency);
  });
}

async function storeRows(
  batch: Batch,
  items: readonly CheckedItem[],
  rows: readonly NewSubmission[],
): Promise<void> {
  const { deps, call, results } = batch;
  const sequencer = await deps.sequencers.get(getPrincipal(call));
  const written = await sequencer.addMany(rows);
  const replays: Replay[] = [];
  const reused: CheckedItem[] = [];
  for (const [i, item] of items.entries()) {
    const { index } = item;
    const result = written[i] as SequencedRow | Error;
    if (result instanceof Error) {
      results[index] = { error: deps.asApiError(result, call.requestId) };
      continue;
    }
    recordUse(deps, getPrincipal(call), call, result);
    if (result.outcome === SubmissionOutcome.STORED)
      results[index] = created(item, storedView(rows[i] as NewSubmission, result));
    else if (result.outcome === SubmissionOutcome.LIMITED)
      results[index] = { error: windowSpent(deps, call, result.projectUse) };
    else if (result.outcome === SubmissionOutcome.REPLAYED) replays.push({ item, id: result.resourceId });
    else reused.push(item);
  }
  await replay(batch, replays);
  if (reused.length > 0) await settleReused(batch, reused);
}

/** Replays or refuses items whose keys were used: the write compares only the hash under the newest secret key. */
async function settleReused(batch: Batch, items: readonly CheckedItem[]): Promise<void> {
  for (const { index } of await settleEarlier(batch, items)) batch.results[index] = { error: keyReused() };
}

/** The reads that items without a new submission count as: a replay as one, an error by the size of its item. */
function countReads({ results }: Batch, bytes: readonly number[]): number {
  let count = 0;
  for (const [index, { outcome, error }] of results.entries()) {
    if (error !== undefined) count += Math.max(1, Math.ceil((bytes[index] ?? 0) / BYTES_OF_A_READ));
    else if (outcome === ItemOutcome.REPLAYED) count++;
  }
  return count;
}
