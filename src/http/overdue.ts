import type { Limits } from './limits.js';
import type { RequestRecord, Requests } from './requests.js';

const LONGEST_CHECK_MS = 1_000;

/**
 * Finds REST requests that have waited for their answer longer than `answerTimeoutMs`, once a second: a timer for each
 * request would cost more than most requests' work.
 *
 * @returns ends the watching
 */
export function watchOverdue(
  requests: Requests,
  { answerTimeoutMs }: Pick<Limits, 'answerTimeoutMs'>,
  expire: (record: RequestRecord) => void,
): () => void {
  const check = () => {
    const began = performance.now() - answerTimeoutMs;
    for (const record of requests.all()) {
      const isOverdue = record.startedMs <= began && record.surface === 'rest' && !record.res.headersSent;
      if (isOverdue) expire(record);
    }
  };
  const timer = setInterval(check, Math.min(LONGEST_CHECK_MS, answerTimeoutMs)).unref();
  return () => clearInterval(timer);
}
