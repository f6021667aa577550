import { setTimeout as delay } from 'node:timers/promises';
import { retryWhileUnavailable } from '../../store/database/database-errors.js';
import type { RecordedAttempt } from '../../store/webhooks/webhook-attempts.js';

/** Records an attempt; resolves once it is durable. */
export type AttemptRecorder = (attempt: RecordedAttempt) => Promise<void>;

const MAX_ROWS = 500;
/** Attempts are batched for this long: nobody waits for a record, and a statement costs as much as sending ten events. */
const GATHER_MS = 10;

/**
 * Batches the attempts of a few milliseconds, or of a statement in flight, into one statement. Retries for some seconds
 * while the database is unavailable, since the receiver already got the events.
 */
export function createAttemptRecorder(
  store: (attempts: readonly RecordedAttempt[]) => Promise<void>,
): AttemptRecorder {
  type Waiting = { attempt: RecordedAttempt; resolve: () => void; reject: (error: unknown) => void };
  const queue: Waiting[] = [];
  let isBusy = false;

  const flush = async () => {
    isBusy = true;
    while (queue.length > 0) {
      if (queue.length < MAX_ROWS) await delay(GATHER_MS);
      const taken = queue.splice(0, MAX_ROWS);
      try {
        await retryWhileUnavailable(() => store(taken.map(({ attempt }) => attempt)));
        for (const { resolve } of taken) resolve();
      } catch (error) {
        for (const { reject } of taken) reject(error);
      }
    }
    isBusy = false;
  };
  return (attempt) =>
    new Promise((resolve, reject) => {
      queue.push({ attempt, resolve, reject });
      if (!isBusy) void flush();
    });
}
