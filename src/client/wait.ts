import { type Submission, SubmissionStatus } from '../../gen/attestation/v1/attestations_pb.js';
import type { CallOptions } from './call.js';
import { AttestationError } from './error.js';

export type WaitOptions = {
  readonly signal?: AbortSignal | undefined;
  /** Of the whole wait; ten minutes when left out. */
  readonly timeoutMs?: number | undefined;
  /** Called with the submission each time it was looked at. */
  readonly onProgress?: ((submission: Submission) => void) | undefined;
};

/** What waiting needs. */
export type WaitDeps = {
  readonly get: (id: string, options: CallOptions) => Promise<Submission>;
  readonly now: () => number;
  readonly random: () => number;
  readonly delay: (ms: number, signal?: AbortSignal) => Promise<void>;
};

const DEFAULT_TIMEOUT_MS = 600_000;
const FIRST_POLL_MS = 250;
const MAX_POLL_MS = 5_000;
/** Settled for now; such a batch may still become witnessed, hours later. */
const GAVE_UP = new Map([
  [SubmissionStatus.PARTIAL, 'wait.partial'],
  [SubmissionStatus.FAILED, 'wait.failed'],
]);

/**
 * Looks at a submission, with growing pauses, until it is witnessed, and returns it with its bundle. Throws
 * AttestationError: `wait.partial` or `wait.failed` when its witnesses' deadline has passed, `wait.timeout`, or why it
 * cannot be looked at. An outage of the service is waited out.
 */
export async function pollUntilWitnessed(
  deps: WaitDeps,
  id: string,
  options: WaitOptions = {},
): Promise<Submission> {
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS, onProgress } = options;
  const deadline = deps.now() + timeoutMs;
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 1.5, MAX_POLL_MS)) {
    const { submission, retryAfterMs = 0 } = await look(deps, id, { signal });
    if (submission) onProgress?.(submission);
    if (submission?.status === SubmissionStatus.WITNESSED) return submission;
    const code = submission && GAVE_UP.get(submission.status);
    if (code)
      throw new AttestationError({
        code,
        message: `${id} is not witnessed: its witnesses' deadline has passed`,
      });
    const delayMs = Math.max(retryAfterMs, pollMs * (0.8 + 0.4 * deps.random()));
    if (deps.now() + delayMs > deadline) {
      throw new AttestationError({
        code: 'wait.timeout',
        message: `${id} was not witnessed in time`,
        retryable: true,
      });
    }
    await deps.delay(delayMs, signal);
  }
}

async function look(
  { get }: WaitDeps,
  id: string,
  options: CallOptions,
): Promise<{ submission?: Submission; retryAfterMs?: number | undefined }> {
  try {
    return { submission: await get(id, options) };
  } catch (error) {
    if (error instanceof AttestationError && error.retryable) return { retryAfterMs: error.retryAfterMs };
    throw error;
  }
}
