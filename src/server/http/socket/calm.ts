import { constants, type ServerHttp2Session } from 'node:http2';
import type { RequestRecord } from './requests.js';

/** What a connection may still ask for without credentials, as of a time and of the bytes received by then. */
type Credit = { left: number; atMs: number; bytes: number };

/**
 * A request on HTTP/2 can be of 15 bytes, as header fields that come again take one byte each, but costs as much as any
 * other. Requests with header fields of their own are longer.
 */
const BYTES_OF_A_REQUEST = 32;
/** How many shorter ones a connection has at first, and at most. */
const BURST = 200;
/** For clients that ask the same over and over, such as health checks. */
const REQUESTS_A_SECOND = 50;
const TOO_MANY = 'too many short requests without credentials';

/**
 * Bounds the requests without valid credentials on a connection of HTTP/2 by its bytes: beyond a burst and a rate, each
 * needs `BYTES_OF_A_REQUEST`. A connection that goes further is closed with ENHANCE_YOUR_CALM (RFC 9113, section 10.5).
 * Requests with credentials, which have limits of their own, cost nothing. A request's `work` is how many it counts for.
 *
 * @returns counts a request when it ends
 */
export function createCalm(monotonicMs: () => number): (record: RequestRecord) => void {
  const credits = new WeakMap<ServerHttp2Session, Credit>();
  const charge = (session: ServerHttp2Session, { call, work }: RequestRecord) => {
    if (session.destroyed || call?.principal !== undefined || call?.session !== undefined) return;
    const credit = refill(credits.get(session), session.socket.bytesRead, monotonicMs());
    credits.set(session, credit);
    credit.left -= work;
    if (credit.left < 0) session.destroy(new Error(TOO_MANY), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  };
  return (record) => {
    const { req, res } = record;
    const session = 'stream' in req ? req.stream.session : undefined;
    if (session !== undefined) res.once('close', () => charge(session as ServerHttp2Session, record));
  };
}

function refill(credit: Credit | undefined, bytes: number, nowMs: number): Credit {
  if (credit === undefined) return { left: BURST, atMs: nowMs, bytes };
  const earned = (bytes - credit.bytes) / BYTES_OF_A_REQUEST;
  const passed = ((nowMs - credit.atMs) / 1_000) * REQUESTS_A_SECOND;
  return { left: Math.min(BURST, credit.left + earned + passed), atMs: nowMs, bytes };
}
