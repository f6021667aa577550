import { type Submission, SubmissionStatus } from '../../gen/attestation/v1/attestations_pb.js';
import { withJitter } from '../protocol/backoff.js';
import type { Caller, CallOptions } from './call.js';
import { AttestationError } from './error.js';
import { checkOptions, FUNCTION, type OptionChecks, SIGNAL, WAIT } from './input/options.js';

export type WaitOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Timeout of the whole wait in milliseconds; ten minutes by default. */
  readonly timeoutMs?: number | undefined;
  /** Called with the submission after each poll. */
  readonly onProgress?: ((submission: Submission) => void) | undefined;
};

const OPTIONS: OptionChecks<WaitOptions> = { signal: SIGNAL, timeoutMs: WAIT, onProgress: FUNCTION };

/**
 * Dependencies of polling. `get` makes one attempt of at most `timeoutMs`; `onRetry` is called after each failed one.
 */
type WaitDeps = Pick<Caller, 'now' | 'random' | 'delay' | 'timeoutMs' | 'onRetry'> & {
  readonly get: (id: string, options: CallOptions) => Promise<Submission>;
};

const DEFAULT_TIMEOUT_MS = 600_000;
const FIRST_POLL_MS = 250;
const MAX_POLL_MS = 5_000;
/** Settled for now: late evidence may still make such a batch witnessed. */
const GAVE_UP = new Map([
  [SubmissionStatus.PARTIAL, 'wait.partial'],
  [SubmissionStatus.FAILED, 'wait.failed'],
]);

/**
 * Polls a submission, with backoff, until it is witnessed and returns it with its bundle. Keeps polling through an
 * outage of the service. Throws AttestationError: `wait.partial` or `wait.failed` if its witnesses' deadline has
 * passed, `wait.timeout`, or the error of the read.
 */
export async function pollUntilWitnessed(
  deps: WaitDeps,
  id: string,
  options: WaitOptions = {},
): Promise<Submission> {
  checkOptions(options, OPTIONS);
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS, onProgress } = options;
  const deadline = deps.now() + timeoutMs;
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 1.5, MAX_POLL_MS)) {
    const leftMs = Math.max(1, Math.ceil(deadline - deps.now()));
    const seen = await look(deps, id, { signal, timeoutMs: Math.min(deps.timeoutMs, leftMs) });
    const isError = seen instanceof AttestationError;
    if (!isError) {
      onProgress?.(seen);
      if (seen.status === SubmissionStatus.WITNESSED) return seen;
      refuseGivenUp(seen);
    }
    const delayMs = Math.max((isError && seen.retryAfterMs) || 0, withJitter(pollMs, deps.random()));
    if (deps.now() + delayMs > deadline) {
      const message = `${id} was not witnessed in time`;
      throw new AttestationError(
        { code: 'wait.timeout', message, retryable: true },
        isError ? { cause: seen } : {},
      );
    }
    if (isError) deps.onRetry(seen, delayMs);
    await deps.delay(delayMs, signal);
  }
}

/** Returns the submission or the retryable error of the read. Throws other errors. */
async function look(
  { get }: WaitDeps,
  id: string,
  options: CallOptions,
): Promise<Submission | AttestationError> {
  try {
    return await get(id, options);
  } catch (error) {
    if (error instanceof AttestationError && error.retryable) return error;
    throw error;
  }
}

/** Throws AttestationError `wait.partial` or `wait.failed` of a submission whose witnesses' deadline has passed. */
export function refuseGivenUp({ id, status }: Submission): void {
  const code = GAVE_UP.get(status);
  if (code === undefined) return;
  const message = `${id} is not witnessed: its witnesses' deadline has passed`;
  throw new AttestationError({ code, message });
}
