/** Many submissions, in as few calls as possible. */
import { create } from '@bufbuild/protobuf';
import {
  AttestationService,
  BatchCreateAttestationsRequestSchema,
  type BatchItem,
  BatchItemSchema,
  ItemOutcome,
  type ItemResult,
  type Submission,
} from '../../gen/attestation/v1/attestations_pb.js';
import { CALL_OPTIONS, type Caller, type CallOptions, callWith, findRetryDelayMs } from './call.js';
import { AttestationError, itemError } from './error.js';
import { chunksOf } from './gather-items.js';
import type { Given } from './input/given.js';
import { checkOptions, FUNCTION, IDEMPOTENCY_KEY, type OptionChecks } from './input/options.js';
import { readRequest } from './input/read-request.js';
import { wrong } from './input/wrong.js';

/** A submission as `create` takes it, with an idempotency key of its own, random by default. */
export type SubmitManyItem = Given<typeof BatchItemSchema>;

/** Options of {@link submitMany}. */
export type SubmitManyOptions = Pick<CallOptions, 'signal' | 'timeoutMs'> & {
  /** Called after each call with how many items got their result by it. */
  readonly onResults?: ((count: number) => void) | undefined;
  /**
   * Once it aborts, no further call is made: what has a result by then is yielded, and the rest is left out. From then on
   * `signal` breaks off the call under way only.
   */
  readonly stop?: AbortSignal | undefined;
};

const OPTIONS: OptionChecks<SubmitManyOptions> = {
  signal: CALL_OPTIONS.signal,
  timeoutMs: CALL_OPTIONS.timeoutMs,
  onResults: FUNCTION,
  stop: CALL_OPTIONS.signal,
};

/** The result of an item: its submission, also if an earlier call had made it, or its error. */
export type SubmitManyResult = {
  /** The place of the item among all. */
  readonly index: number;
} & (
  | { readonly submission: Submission; readonly isReplayed: boolean; readonly error?: never }
  | { readonly error: AttestationError; readonly submission?: never; readonly isReplayed?: never }
);

type Outcome = Pick<SubmitManyResult, 'submission' | 'isReplayed' | 'error'>;

const METHOD = AttestationService.method.batchCreateAttestations;
const RATE_LIMITED = 'rate_limit.exceeded';

/**
 * Submits items and yields a result for each, in their order; `items` is read ahead by one call. What fails for the moment
 * is sent again under the same idempotency keys, for as long as some of it succeeds, as often as the client retries, and no
 * `Retry-After` is longer than a minute. An error of a whole call is the result of each of its items, the same object.
 * Throws only the signal's reason, what `items` throws, and TypeError of an item that is wrong: of an array before any call,
 * else after the results of the items before it.
 */
export async function* submitMany(
  caller: Caller,
  items: Iterable<SubmitManyItem> | AsyncIterable<SubmitManyItem>,
  options: SubmitManyOptions = {},
): AsyncGenerator<SubmitManyResult> {
  checkOptions(options, OPTIONS);
  let first = 0;
  const chunks = Array.isArray(items)
    ? chunksOf(caller, items.map(readItem), (item) => item)
    : chunksOf(caller, items, readItem);
  for await (const chunk of chunks) {
    const outcomes: (Outcome | undefined)[] = [];
    let next = 0;
    for await (const open of submitChunk(caller, chunk, { outcomes, options })) {
      for (; next < chunk.length && !open.has(next); next++) {
        const outcome = outcomes[next];
        if (outcome !== undefined) yield { index: first + next, ...outcome } as SubmitManyResult;
      }
    }
    if (options.stop?.aborted) return;
    first += chunk.length;
  }
}

const NONE: ReadonlySet<number> = new Set();

/**
 * Fills in the outcomes by the places of the items, and yields after each call the places that have none yet; those that a
 * stop leaves out stay undefined.
 */
async function* submitChunk(
  caller: Caller,
  chunk: readonly BatchItem[],
  { outcomes, options }: { outcomes: (Outcome | undefined)[]; options: SubmitManyOptions },
): AsyncGenerator<ReadonlySet<number>> {
  const { onResults, stop, ...callOptions } = options;
  let open = [...chunk.keys()];
  let most = open.length;
  /** Calls in a row of which no item succeeded. */
  let failures = 0;
  while (open.length > 0 && !stop?.aborted) {
    const sent = open.slice(0, most);
    const unsent = open.slice(sent.length);
    const items = sent.map((place) => chunk[place] as BatchItem);
    const results = await callOnce(caller, items, { ...callOptions, stop });
    if (results === undefined) break;
    const { again, error, delayMs } = judge(caller, { sent, results, failures });
    failures = again.length < sent.length ? 0 : failures + 1;
    most = nextCount(most, results);
    for (const [i, place] of sent.entries()) outcomes[place] = results[i];
    for (const place of again) outcomes[place] = undefined;
    open = [...again, ...unsent];
    const isGivenUp = error !== undefined && delayMs === undefined;
    if (isGivenUp) for (const place of unsent) outcomes[place] = { error };
    if (isGivenUp) open = [];
    onResults?.(sent.length + unsent.length - open.length);
    yield new Set(open);
    if (delayMs === undefined) continue;
    caller.onRetry(error, delayMs);
    await delayUnlessStopped(caller, delayMs, { stop, signal: options.signal });
  }
  yield NONE;
}

type Judged = { again: number[] } & (
  | { error: AttestationError; delayMs: number | undefined }
  | { error?: never; delayMs?: never }
);

/** Which items of a call failed for the moment, and after which delay to send them again; undefined if not at all. */
function judge(
  caller: Caller,
  { sent, results, failures }: { sent: readonly number[]; results: readonly Outcome[]; failures: number },
): Judged {
  const failed = sent.filter((_, i) => results[i]?.error?.retryable);
  const errors = results.flatMap(({ error }) => (error?.retryable ? [error] : []));
  const [error] = errors;
  if (error === undefined) return { again: [] };
  const delayMs = findDelayMs(caller, errors, failed.length < sent.length ? 0 : failures + 1);
  return { again: delayMs === undefined ? [] : failed, error, delayMs };
}

async function delayUnlessStopped(
  { delay }: Caller,
  ms: number,
  { stop, signal }: Pick<SubmitManyOptions, 'stop' | 'signal'>,
): Promise<void> {
  const either = stop === undefined ? signal : AbortSignal.any(signal ? [stop, signal] : [stop]);
  await delay(ms, either).catch((reason: unknown) => {
    if (!stop?.aborted) throw reason;
  });
}

/** After a rate limit the next call has as many items as this one had accepted: rejected ones count as reads. */
function nextCount(most: number, results: readonly Outcome[]): number {
  const passed = results.filter(({ error }) => error?.code !== RATE_LIMITED).length;
  return passed === 0 || passed === results.length ? most : passed;
}

/**
 * The longest delay that the errors of a call ask for, after `failures` calls in a row that failed; undefined if there are
 * none, or the call must not be repeated.
 */
function findDelayMs(
  caller: Caller,
  errors: readonly AttestationError[],
  failures: number,
): number | undefined {
  if (caller.maxRetries === 0 || failures > caller.maxRetries) return undefined;
  let longest: number | undefined;
  for (const error of new Set(errors)) {
    const delayMs = findRetryDelayMs(caller, error, Math.max(0, failures - 1));
    if (delayMs === undefined) return undefined;
    longest = Math.max(longest ?? 0, delayMs);
  }
  return longest;
}

/** Makes one call. An error of the call is the outcome of each item; undefined if it was broken off after a stop. */
async function callOnce(
  caller: Caller,
  items: BatchItem[],
  { stop, ...options }: Pick<SubmitManyOptions, 'stop' | 'signal' | 'timeoutMs'>,
): Promise<Outcome[] | undefined> {
  try {
    const request = create(BatchCreateAttestationsRequestSchema, { items });
    const { results } = await callWith({ ...caller, maxRetries: 0 }, METHOD, request, options);
    return items.map((_, i) => outcomeOf(results[i]));
  } catch (error) {
    if (options.signal?.aborted && stop?.aborted) return undefined;
    if (!(error instanceof AttestationError)) throw error;
    return items.map(() => ({ error }));
  }
}

function outcomeOf(result: ItemResult | undefined): Outcome {
  const { outcome, submission, error, retryAfter } = result ?? {};
  if (submission !== undefined) return { submission, isReplayed: outcome === ItemOutcome.REPLAYED };
  return { error: itemError(error, retryAfter) };
}

/** The message of an item, with an idempotency key. Throws TypeError, whose JSON pointer starts with the item's place. */
function readItem(given: SubmitManyItem, place: number): BatchItem {
  const item = readRequest(BatchItemSchema, given, [place]);
  item.idempotencyKey ??= crypto.randomUUID();
  if (!IDEMPOTENCY_KEY.isRight(item.idempotencyKey)) {
    throw wrong([place, 'idempotencyKey'], `must be ${IDEMPOTENCY_KEY.expected}`);
  }
  return item;
}
