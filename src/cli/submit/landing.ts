/** Waits until many submissions are witnessed, by polls whose number does not grow with theirs. */
import { type Submission, SubmissionStatus } from '../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../client/client.js';
import { AttestationError } from '../../client/error.js';

type LandingOptions = {
  /** Of each submission, in milliseconds from when its wait begins. */
  readonly timeoutMs: number;
  /** Ends all waits, with the submissions as they were. */
  readonly signal: AbortSignal;
  readonly onPoll: () => void;
  readonly now: () => number;
};

type Waiting = {
  readonly submission: Submission;
  readonly deadline: number;
  readonly resolve: (landed: Submission) => void;
  readonly reject: (error: unknown) => void;
};

/** Deadlines so near to one another are one. */
const SAME_DEADLINE_MS = 1_000;

/**
 * Returns a function that waits for a submission, and returns it as witnessed. Of all that wait, the first one in the log is
 * polled: its bundle says up to where its batch goes, and what is in the batch has landed as well. The function throws
 * AttestationError as waitUntilWitnessed does.
 */
export function watchLanding(
  { attestations }: Client,
  { timeoutMs, signal, onPoll, now }: LandingOptions,
): (submission: Submission) => Promise<Submission> {
  const waiting = new Set<Waiting>();
  let isPolling = false;
  const settle = (isSettled: (one: Waiting) => boolean, end: (one: Waiting) => void) => {
    for (const one of waiting) {
      if (!isSettled(one)) continue;
      waiting.delete(one);
      end(one);
    }
  };
  const pollFirst = async () => {
    const first = findFirst(waiting);
    let seen: Submission | undefined;
    const onProgress = (submission: Submission) => {
      seen = submission;
      onPoll();
    };
    const options = { signal, timeoutMs: Math.max(0, first.deadline - now()), onProgress };
    const isOfBatch = (one: Waiting) => one === first || isIn(one.submission, seen);
    try {
      const found = await attestations.waitUntilWitnessed(first.submission.id, options);
      settle(isOfBatch, ({ submission, resolve }) => resolve(withOutcome(submission, found)));
    } catch (error) {
      if (signal.aborted) settle(always, ({ submission, resolve }) => resolve(submission));
      else if (!(error instanceof AttestationError)) settle(always, ({ reject }) => reject(error));
      else settle(findAffected(error, first, isOfBatch), (one) => one.reject(errorFor(one, error, first)));
    }
  };
  const poll = async () => {
    isPolling = true;
    while (waiting.size > 0) await pollFirst();
    isPolling = false;
  };
  return (submission) =>
    new Promise((resolve, reject) => {
      if (signal.aborted || submission.status === SubmissionStatus.WITNESSED) return resolve(submission);
      waiting.add({ submission, deadline: now() + timeoutMs, resolve, reject });
      if (!isPolling) void poll();
    });
}

const always = () => true;

/** The one with the lowest place in the log: batches settle in their order. */
function findFirst(waiting: ReadonlySet<Waiting>): Waiting {
  return [...waiting].reduce((first, one) =>
    one.submission.logIndex < first.submission.logIndex ? one : first,
  );
}

/** Whether a submission, which is not before `seen` in the log, is in the batch that `seen` is in. */
function isIn({ logIndex }: Submission, seen: Submission | undefined): boolean {
  const batch = seen?.bundle?.batch;
  return batch !== undefined && logIndex >= batch.firstIndex && logIndex < batch.treeSize;
}

/** The submission with what its batch came to. */
function withOutcome(submission: Submission, { status, witnessedAt, batchId }: Submission): Submission {
  return { ...submission, status, witnessedAt, ...(batchId !== undefined && { batchId }) };
}

/** Which others an error of the first one is the error of, too. */
function findAffected(
  { code }: AttestationError,
  first: Waiting,
  isOfBatch: (one: Waiting) => boolean,
): (one: Waiting) => boolean {
  if (code === 'wait.timeout') return ({ deadline }) => deadline <= first.deadline + SAME_DEADLINE_MS;
  if (code.startsWith('wait.')) return isOfBatch;
  return code.startsWith('submission.') ? (one) => one === first : always;
}

/** The error of a wait names the submission. */
function errorFor({ submission }: Waiting, error: AttestationError, first: Waiting): AttestationError {
  if (submission === first.submission || !error.code.startsWith('wait.')) return error;
  const { code, message, retryable } = error;
  return new AttestationError({
    code,
    message: message.replaceAll(first.submission.id, submission.id),
    retryable,
  });
}
