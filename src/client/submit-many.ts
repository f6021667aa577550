/** Many submissions, in as few calls as possible. */
import { create, getOption, toBinary } from '@bufbuild/protobuf';
import { max_bytes as maxBytes } from '../../gen/attestation/options/v1/options_pb.js';
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
  /** Once it aborts, no further call is made: what has a result by then is yielded, and the rest is left out. */
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
/** Items of one call, as the proto has it. */
export const MAX_BATCH_ITEMS = 1_000;
const MAX_BATCH_BYTES = getOption(BatchCreateAttestationsRequestSchema.field.items, maxBytes);
/** Tag and length of an item. */
const ITEM_HEAD_BYTES = 8;
const RATE_LIMITED = 'rate_limit.exceeded';
/** Items that are there are sent without waiting longer for the next one. */
const LINGER_MS = 500;

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
    const outcomes = await submitChunk(caller, chunk, options);
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome !== undefined) yield { index: first + i, ...outcome } as SubmitManyResult;
    }
    if (options.stop?.aborted) return;
    first += chunk.length;
  }
}

/** The outcomes by the places of the items; undefined of those that a stop has left out. */
async function submitChunk(
  caller: Caller,
  chunk: readonly BatchItem[],
  { onResults, stop, ...options }: SubmitManyOptions,
): Promise<(Outcome | undefined)[]> {
  const outcomes: (Outcome | undefined)[] = [];
  let open = [...chunk.keys()];
  let most = open.length;
  /** Calls in a row of which no item succeeded. */
  let failures = 0;
  while (open.length > 0 && !stop?.aborted) {
    const sent = open.slice(0, most);
    const results = await callOnce(
      caller,
      sent.map((place) => chunk[place] as BatchItem),
      options,
    );
    for (const [i, place] of sent.entries()) outcomes[place] = results[i] as Outcome;
    const failed = sent.filter((place) => outcomes[place]?.error?.retryable);
    failures = failed.length < sent.length ? 0 : failures + 1;
    most = nextCount(most, results);
    const unsent = open.slice(sent.length);
    open = [...failed, ...unsent];
    const errors = failed.map((place) => outcomes[place]?.error as AttestationError);
    const [error] = errors;
    const mayRepeat = caller.maxRetries > 0 && failures <= caller.maxRetries;
    const delayMs = mayRepeat ? longestDelayMs(caller, errors, Math.max(0, failures - 1)) : undefined;
    if (error !== undefined && delayMs === undefined) {
      for (const place of unsent) outcomes[place] = { error };
      onResults?.(sent.length + unsent.length);
      return outcomes;
    }
    onResults?.(sent.length - failed.length);
    if (error === undefined || delayMs === undefined) continue;
    caller.onRetry(error, delayMs);
    await delayUnlessStopped(caller, delayMs, { stop, signal: options.signal });
  }
  for (const place of open) outcomes[place] = undefined;
  return outcomes;
}

async function delayUnlessStopped(
  { delay }: Caller,
  ms: number,
  { stop, signal }: Pick<SubmitManyOptions, 'stop' | 'signal'>,
): Promise<void> {
  const either = stop === undefined ? signal : AbortSignal.any(signal ? [stop, signal] : [stop]);
  await delay(ms, either).catch((reason: unknown) => {
    if (signal?.aborted || !stop?.aborted) throw reason;
  });
}

/** After a rate limit the next call has as many items as this one had accepted: rejected ones count as reads. */
function nextCount(most: number, results: readonly Outcome[]): number {
  const passed = results.filter(({ error }) => error?.code !== RATE_LIMITED).length;
  return passed === 0 || passed === results.length ? most : passed;
}

/** Of errors that can be retried, the longest delay; undefined if there are none, or one must not be retried. */
function longestDelayMs(
  caller: Caller,
  errors: readonly AttestationError[],
  attempt: number,
): number | undefined {
  let longest: number | undefined;
  for (const error of new Set(errors)) {
    const delayMs = findRetryDelayMs(caller, error, attempt);
    if (delayMs === undefined) return undefined;
    longest = Math.max(longest ?? 0, delayMs);
  }
  return longest;
}

/** Makes one call. An error of the call is the outcome of each item. */
async function callOnce(caller: Caller, items: BatchItem[], options: CallOptions): Promise<Outcome[]> {
  try {
    const request = create(BatchCreateAttestationsRequestSchema, { items });
    const { results } = await callWith({ ...caller, maxRetries: 0 }, METHOD, request, options);
    return items.map((_, i) => outcomeOf(results[i]));
  } catch (error) {
    if (!(error instanceof AttestationError)) throw error;
    return items.map(() => ({ error }));
  }
}

function outcomeOf(result: ItemResult | undefined): Outcome {
  const { outcome, submission, error, retryAfter } = result ?? {};
  if (submission !== undefined) return { submission, isReplayed: outcome === ItemOutcome.REPLAYED };
  return { error: itemError(error, retryAfter) };
}

/**
 * Gathers items into calls within the bounds of one. An item that takes long to come ends a call, as does one that `read`
 * refuses: it throws after the call.
 */
async function* chunksOf<T>(
  { delay }: Caller,
  items: Iterable<T> | AsyncIterable<T>,
  read: (item: T, place: number) => BatchItem,
): AsyncGenerator<BatchItem[]> {
  let chunk: BatchItem[] = [];
  let bytes = 0;
  let place = 0;
  for await (const given of lingering(items, delay)) {
    let item: BatchItem | undefined;
    try {
      item = given === WAITING ? undefined : read(given, place++);
    } catch (error) {
      if (chunk.length > 0) yield chunk;
      throw error;
    }
    const more = item === undefined ? 0 : toBinary(BatchItemSchema, item).length + ITEM_HEAD_BYTES;
    const isFull = chunk.length === MAX_BATCH_ITEMS || bytes + more > MAX_BATCH_BYTES;
    if (chunk.length > 0 && (item === undefined || isFull)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    if (item !== undefined) chunk.push(item);
    bytes += more;
  }
  if (chunk.length > 0) yield chunk;
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

const WAITING = Symbol('waiting');

/** Yields the items, and WAITING whenever the next one takes long. */
async function* lingering<T>(
  items: Iterable<T> | AsyncIterable<T>,
  delay: Caller['delay'],
): AsyncGenerator<T | typeof WAITING> {
  if (Symbol.iterator in items) return yield* items;
  const source = items[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = source.next();
      const waiting = new AbortController();
      const late = delay(LINGER_MS, waiting.signal).then(
        () => true as const,
        () => true as const,
      );
      if ((await Promise.race([next, late])) === true) yield WAITING;
      const { done, value } = await next;
      waiting.abort();
      if (done) return;
      yield value;
    }
  } finally {
    await source.return?.();
  }
}
