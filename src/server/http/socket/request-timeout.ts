import type { Limits } from './limits.js';
import type { RequestRecord, Requests } from './requests.js';

const LONGEST_CHECK_MS = 1_000;
/** Above this part of `maxRequests`, answers that nobody takes keep others out. */
const CROWDED = 0.5;
/** The most that stands for `sendIdleMs` then. */
const CROWDED_IDLE_MS = 1_000;

type Bounds = Pick<
  Limits,
  'responseTimeoutMs' | 'sendTimeoutMs' | 'sendIdleMs' | 'maxStreamMs' | 'maxRequests'
>;

/**
 * Finds, once a second, REST requests that have waited for their answer longer than `responseTimeoutMs`, and answers of
 * which nothing was taken for `sendIdleMs`, or not all within `sendTimeoutMs`, which are cut off: a timer for each request
 * would cost more than most requests' work. While many are open, answers are given a second to be taken: a stranger's that
 * are not, on some connections of HTTP/2, would be all that `maxRequests` lets in.
 *
 * @returns ends the watching
 */
export function watchTimeouts(
  requests: Requests,
  bounds: Bounds,
  expire: (record: RequestRecord) => void,
): () => void {
  const { responseTimeoutMs, sendTimeoutMs, sendIdleMs, maxRequests } = bounds;
  const shortestMs = Math.min(responseTimeoutMs, sendTimeoutMs, sendIdleMs);
  const waits = new WeakMap<RequestRecord, UnreadResponse>();
  const check = () => {
    const nowMs = performance.now();
    const isCrowded = requests.all().length > maxRequests * CROWDED;
    const idleMs = isCrowded ? Math.min(sendIdleMs, CROWDED_IDLE_MS) : sendIdleMs;
    for (const record of requests.all()) {
      const ageMs = nowMs - record.startedMs;
      if (record.res.headersSent && isUnread(record, waits, nowMs, idleMs)) record.res.destroy();
      else if (record.res.headersSent) cutOffUnread(record, ageMs, bounds);
      else if (record.protocol === 'rest' && ageMs >= responseTimeoutMs) expire(record);
    }
  };
  const timer = setInterval(check, Math.min(LONGEST_CHECK_MS, shortestMs)).unref();
  return () => clearInterval(timer);
}

/** An answer of which the connection has not taken all. */
type UnreadResponse = { sinceMs: number };

/** Whether none of what waits to be sent was taken for so long. An answer behind another on its connection waits for that. */
function isUnread(
  record: RequestRecord,
  waits: WeakMap<RequestRecord, UnreadResponse>,
  nowMs: number,
  sendIdleMs: number,
): boolean {
  const { res } = record;
  if (res.writableLength === 0 || res.socket === null) {
    waits.delete(record);
    return false;
  }
  const wait = waits.get(record);
  if (wait !== undefined) return nowMs - wait.sinceMs >= sendIdleMs;
  const begun = { sinceMs: nowMs };
  waits.set(record, begun);
  res.on('drain', () => {
    begun.sinceMs = performance.now();
  });
  return false;
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
