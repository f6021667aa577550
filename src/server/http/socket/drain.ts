import { constants } from 'node:http2';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Limits } from './limits.js';
import type { Listener } from './listener.js';
import type { NodeResponse, Requests } from './requests.js';

/** The highest stream id: a GOAWAY with it refuses nothing yet (RFC 9113, section 6.8). */
const LAST_STREAM = 2 ** 31 - 1;
/** How long the `close` events of the last requests may take once every connection is closed. */
const LAST_EVENTS_MS = 1_000;

/**
 * Stops accepting connections and ends those there are without dropping a request: clients are told first (GOAWAY, and
 * `connection: close` on every answer that is not out yet; on later ones the caller sees to it), idle connections are
 * closed a little later, busy ones when their answers are out. What is left after `graceMs` is cut off.
 */
export async function drain(
  listener: Listener,
  requests: Requests,
  { idleGraceMs, graceMs }: Pick<Limits, 'idleGraceMs' | 'graceMs'>,
): Promise<void> {
  // Node's own http close would end idle connections at once, and with them requests already on the wire.
  const closed = new Promise<void>((resolve) => {
    NetServer.prototype.close.call(listener.server, () => resolve());
  });
  for (const { res } of requests.all()) closeAfterResponse(res);
  for (const session of listener.sessions) {
    if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM);
  }
  const sweep = setInterval(() => closeIdle(listener, requests), idleGraceMs);
  const cutOff = setTimeout(() => {
    for (const connection of listener.connections) connection.destroy();
  }, graceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(cutOff);
  listener.server.close();
  await Promise.race([requests.ended(), delay(LAST_EVENTS_MS, undefined, { ref: false })]);
}

/** Closes an HTTP/1.1 connection after this response, which carries `connection: close`. */
export function closeAfterResponse(res: NodeResponse): void {
  if ('shouldKeepAlive' in res && !res.headersSent) res.shouldKeepAlive = false;
}

function closeIdle({ sockets, sessions }: Listener, requests: Requests): void {
  const busy = new Set<Socket>([...requests.all()].map(({ req }) => req.socket));
  for (const socket of sockets) if (!busy.has(socket)) socket.destroySoon();
  for (const session of sessions) session.close();
}
