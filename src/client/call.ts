/** Unary calls with retries. */
import {
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  getOption,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { Transport } from '@connectrpc/connect';
import { rules } from '../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../gen/attestation/v1/errors_pb.js';
import { exponentialMs } from '../protocol/backoff.js';
import { type AttestationError, toAttestationError } from './error.js';
import type { Given } from './input/given.js';
import { checkOptions, IDEMPOTENCY_KEY, type OptionChecks, SIGNAL, TIMEOUT } from './input/options.js';
import { readRequest } from './input/read-request.js';
import type { KeySource } from './keys/key-source.js';

/** Options of one call. */
export type CallOptions = {
  /** Aborts the call and its retries: the call throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Timeout of each attempt in milliseconds; by default the client's. */
  readonly timeoutMs?: number | undefined;
  /** Idempotency key of a call that changes something, sent with every attempt; random by default. */
  readonly idempotencyKey?: string | undefined;
};

/** The checks of these options. */
export const CALL_OPTIONS: OptionChecks<CallOptions> = {
  signal: SIGNAL,
  timeoutMs: TIMEOUT,
  idempotencyKey: IDEMPOTENCY_KEY,
};

/** Dependencies of a call: transport, headers and retry policy. */
export type Caller = {
  readonly transport: Transport;
  /** Sent with every call. */
  readonly headers: Readonly<Record<string, string>>;
  readonly key: KeySource;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly now: () => number;
  /** Returns a random number from 0, below 1. */
  readonly random: () => number;
  readonly delay: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly onRetry: (error: AttestationError, delayMs: number) => void;
};

const BACKOFF = { firstMs: 500, maxMs: 8_000 };
/** A call fails instead of waiting longer than this for a retry. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Calls a method and returns its response. Retries transient failures, if that is safe, after the service's
 * `Retry-After` and with exponential backoff and full jitter. All attempts of a method that changes something carry the
 * same `Idempotency-Key`. Throws AttestationError, and TypeError before the call if request or options are wrong.
 */
export async function callUnary<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: Given<I> | MessageInitShape<I>,
  options?: CallOptions,
): Promise<MessageShape<O>> {
  checkOptions(options, CALL_OPTIONS);
  return callWith(caller, method, readRequest(method.input, request), options);
}

/** The same with a request and options that were checked. */
export async function callWith<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: MessageShape<I>,
  options: CallOptions = {},
): Promise<MessageShape<O>> {
  const { signal } = options;
  const idempotency = idempotencyHeader(method, options);
  let rejected: string | undefined;
  for (let attempt = 0; ; attempt++) {
    signal?.throwIfAborted();
    const key = await caller.key.get(signal);
    try {
      return await callOnce(caller, method, request, options, { ...idempotency, ...keyHeader(key) });
    } catch (thrown) {
      signal?.throwIfAborted();
      const error = toAttestationError(thrown, caller.now());
      if (error.errorCode === ErrorCode.AUTH_INVALID_KEY && key !== undefined && rejected === undefined) {
        rejected = key;
        if (caller.key.replace(key)) continue;
      }
      const mayRepeat = attempt < caller.maxRetries && isSafeToRepeat(method, error);
      const delayMs = mayRepeat ? findRetryDelayMs(caller, error, attempt) : undefined;
      if (delayMs === undefined) throw error;
      caller.onRetry(error, delayMs);
      await caller.delay(delayMs, signal);
    }
  }
}

async function callOnce<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: MessageShape<I>,
  { signal, timeoutMs = caller.timeoutMs }: CallOptions,
  headers: Record<string, string>,
): Promise<MessageShape<O>> {
  const all = { ...caller.headers, ...headers };
  const { message } = await caller.transport.unary(
    method,
    signal,
    timeoutMs,
    all,
    request as MessageInitShape<I>,
  );
  return message;
}

function keyHeader(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

function idempotencyHeader(method: DescMethod, { idempotencyKey }: CallOptions): Record<string, string> {
  if (!getOption(method, rules).idempotentByKey) return {};
  return { 'idempotency-key': idempotencyKey ?? crypto.randomUUID() };
}

/** Without an idempotency key a failed call may have changed something, except one that was rate-limited. */
function isSafeToRepeat(method: DescMethod, error: AttestationError): boolean {
  const isReading = method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN;
  const isKeyed = getOption(method, rules).idempotentByKey;
  return isReading || isKeyed || error.errorCode === ErrorCode.RATE_LIMIT_EXCEEDED;
}

/** Delay before the next attempt in milliseconds; undefined if there must be none. */
export function findRetryDelayMs(
  { random, now }: Pick<Caller, 'random' | 'now'>,
  error: AttestationError,
  attempt: number,
): number | undefined {
  const { retryable, retryAfterMs = 0 } = error;
  if (!retryable || retryAfterMs > MAX_RETRY_AFTER_MS) return undefined;
  // Once only: where the clocks differ, it comes too early.
  const waitMs = (attempt === 0 ? findWindowDelayMs(error, now()) : undefined) ?? retryAfterMs;
  // Full jitter: callers rejected together must not retry together.
  return waitMs + random() * exponentialMs(attempt, BACKOFF);
}

/** Until the rate window that the error names starts, which is nearer than `Retry-After`; undefined of other errors. */
function findWindowDelayMs(
  { errorCode, details, retryAfterMs = 0 }: AttestationError,
  nowMs: number,
): number | undefined {
  if (errorCode !== ErrorCode.RATE_LIMIT_EXCEEDED || typeof details.reset !== 'string') return undefined;
  const delayMs = Math.max(0, Date.parse(details.reset) - nowMs);
  return delayMs <= retryAfterMs ? delayMs : undefined;
}
