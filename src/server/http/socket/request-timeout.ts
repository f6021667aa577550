import type { Limits } from './limits.js';
import type { RequestRecord, Requests } from './requests.js';

const LONGEST_CHECK_MS = 1_000;
/** Above this part of `maxRequests`, responses that are not read block other requests. */
const CROWDED = 0.5;
/** Maximum of `sendIdleMs` then. */
const CROWDED_IDLE_MS = 1_000;

/** RFC 9113, section 7. */
const CANCEL = 0x8;

type Bounds = Pick<
  Limits,
  'responseTimeoutMs' | 'requestTimeoutMs' | 'sendTimeoutMs' | 'sendIdleMs' | 'maxStreamMs' | 'maxRequests'
>;

/**
 * Checks, once a second, for requests that time out, without a response after `responseTimeoutMs`; for responses of which
 * nothing was read for `sendIdleMs`, or not all within `sendTimeoutMs`, which are aborted; and for bodies on HTTP/2, where
 * Node has no request timeout, that are not all there after `requestTimeoutMs`, whose streams are cancelled. A timer per
 * request would cost more than most requests' work. While many requests are open, `sendIdleMs` is at most a second: unread
 * responses on a few connections of HTTP/2 would otherwise use up `maxRequests`.
 *
 * @returns stops the checks
 */
export function watchTimeouts(
  requests: Requests,
  bounds: Bounds,
  expire: (record: RequestRecord) => void,
): () => void {
  const { responseTimeoutMs, requestTimeoutMs, sendTimeoutMs, sendIdleMs, maxRequests } = bounds;
  const shortestMs = Math.min(responseTimeoutMs, requestTimeoutMs, sendTimeoutMs, sendIdleMs);
  const waits = new WeakMap<RequestRecord, UnreadResponse>();
  const check = () => {
    const nowMs = performance.now();
    const isCrowded = requests.all().length > maxRequests * CROWDED;
    const idleMs = isCrowded ? Math.min(sendIdleMs, CROWDED_IDLE_MS) : sendIdleMs;
    for (const record of requests.all()) {
      const ageMs = nowMs - record.startedMs;
      if (record.res.headersSent && isUnread(record, waits, nowMs, idleMs)) record.res.destroy();
      else if (record.res.headersSent) cutOffUnread(record, ageMs, bounds);
      else if (record.timesOut && ageMs >= responseTimeoutMs) expire(record);
      if (ageMs >= requestTimeoutMs) cancelUnsent(record);
    }
  };
  const timer = setInterval(check, Math.min(LONGEST_CHECK_MS, shortestMs)).unref();
  return () => clearInterval(timer);
}

/** Cancels a stream of HTTP/2 whose body the client has not sent in full. */
function cancelUnsent({ req }: RequestRecord): void {
  if (!('stream' in req) || req.stream.endAfterHeaders || req.stream.readableEnded) return;
  req.stream.close(CANCEL);
}

/** A response that the client has not read in full. */
type UnreadResponse = { sinceMs: number };

/** Whether nothing of a response was read for `sendIdleMs`. One that is queued behind another is not counted. */
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
  // Only streams of the public RPCs last longer than the start of their response.
  const isStream = call === undefined && !res.writableEnded;
  if (ageMs > sendTimeoutMs + (isStream ? maxStreamMs : 0)) res.destroy();
}
