/** One call with its retries. */
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
import { type AttestationError, toAttestationError } from './error.js';

/** What may be said with a call. */
export type CallOptions = {
  /** Ends the call, its retries and its waits; what is thrown then is the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Of each attempt. */
  readonly timeoutMs?: number | undefined;
  /** Of a call that changes something; made up when left out, and the same on every attempt. */
  readonly idempotencyKey?: string | undefined;
};

/** How calls are made. */
export type Caller = {
  readonly transport: Transport;
  /** Sent with every call. */
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly now: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly delay: (ms: number, signal?: AbortSignal) => Promise<void>;
  readonly onRetry: (error: AttestationError, delayMs: number) => void;
};

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 8_000;
/** A service that asks for a longer wait is not waited for: the caller is told. */
const MAX_RETRY_AFTER_MS = 60_000;

/**
 * Calls a method and returns its answer. Failures that may pass are tried again, where that is safe, with growing,
 * jittered pauses or after the time the service asks for; a method that changes something carries one
 * `Idempotency-Key` through all attempts. Throws AttestationError.
 */
export async function callUnary<I extends DescMessage, O extends DescMessage>(
  caller: Caller,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: CallOptions = {},
): Promise<MessageShape<O>> {
  const { signal, timeoutMs = caller.timeoutMs } = options;
  const headers = { ...caller.headers, ...idempotencyHeader(method, options) };
  for (let attempt = 0; ; attempt++) {
    signal?.throwIfAborted();
    try {
      const { message } = await caller.transport.unary(method, signal, timeoutMs, headers, request);
      return message;
    } catch (thrown) {
      signal?.throwIfAborted();
      const error = toAttestationError(thrown, caller.now());
      const mayRepeat = attempt < caller.maxRetries && isSafeToRepeat(method, error);
      const delayMs = mayRepeat ? findRetryDelayMs(caller, error, attempt) : undefined;
      if (delayMs === undefined) throw error;
      caller.onRetry(error, delayMs);
      await caller.delay(delayMs, signal);
    }
  }
}

function idempotencyHeader(method: DescMethod, { idempotencyKey }: CallOptions): Record<string, string> {
  if (!getOption(method, rules).idempotentByKey) return {};
  return { 'idempotency-key': idempotencyKey ?? crypto.randomUUID() };
}

/** What changes something and honours no key may have happened, whatever the error; unless it was turned away. */
function isSafeToRepeat(method: DescMethod, error: AttestationError): boolean {
  const isReading = method.idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN;
  const isKeyed = getOption(method, rules).idempotentByKey;
  return isReading || isKeyed || error.errorCode === ErrorCode.RATE_LIMIT_EXCEEDED;
}

/** How long to wait before the next attempt; undefined when there should be none. */
function findRetryDelayMs({ random }: Caller, error: AttestationError, attempt: number): number | undefined {
  const { retryable, retryAfterMs = 0 } = error;
  if (!retryable || retryAfterMs > MAX_RETRY_AFTER_MS) return undefined;
  // Full jitter: callers turned away together must not come back together.
  return retryAfterMs + random() * Math.min(FIRST_DELAY_MS * 2 ** attempt, MAX_DELAY_MS);
}
