import type { Limits } from './limits.js';
import type { RequestRecord, Requests } from './requests.js';

const LONGEST_CHECK_MS = 1_000;

type Bounds = Pick<Limits, 'answerTimeoutMs' | 'sendTimeoutMs' | 'maxStreamMs'>;

/**
 * Finds, once a second, REST requests that have waited for their answer longer than `answerTimeoutMs`, and answers that
 * were not read within `sendTimeoutMs`, which are cut off: a timer for each request would cost more than most requests'
 * work.
 *
 * @returns ends the watching
 */
export function watchOverdue(
  requests: Requests,
  bounds: Bounds,
  expire: (record: RequestRecord) => void,
): () => void {
  const { answerTimeoutMs, sendTimeoutMs } = bounds;
  const shortestMs = Math.min(answerTimeoutMs, sendTimeoutMs);
  const check = () => {
    const nowMs = performance.now();
    for (const record of requests.all()) {
      const ageMs = nowMs - record.startedMs;
      if (record.res.headersSent) cutOffUnread(record, ageMs, bounds);
      else if (record.surface === 'rest' && ageMs >= answerTimeoutMs) expire(record);
    }
  };
  const timer = setInterval(check, Math.min(LONGEST_CHECK_MS, shortestMs)).unref();
  return () => clearInterval(timer);
}

function cutOffUnread(
  { call, res }: RequestRecord,
  ageMs: number,
  { sendTimeoutMs, maxStreamMs }: Bounds,
): void {
  // Only streams of the RPCs that anyone may call are not over once their answer begins.
  const isStream = call === undefined && !res.writableEnded;
  if (ageMs > sendTimeoutMs + (isStream ? maxStreamMs : 0)) res.destroy();
}
