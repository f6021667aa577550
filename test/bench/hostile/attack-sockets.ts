import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Target } from './attack.js';

const AT_ONCE = 200;
/** A server that has taken nothing for this long will not go on. */
const STALLED_MS = 3_000;

/** Opens connections of HTTP/1.1, held until everything is measured. Those that the server closes are no error. */
export async function openSockets({ port, hooks }: Target, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  hooks.add(async () => {
    for (const socket of sockets) socket.destroy();
  });
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - sockets.length) }, () => openSocket(port));
    sockets.push(...(await Promise.all(some)));
  }
  return sockets;
}

/** Opens a connection of HTTP/2, held until everything is measured. Its socket counts bytes when the session has ended too. */
export async function openSession({
  baseUrl,
  hooks,
}: Target): Promise<{ session: ClientHttp2Session; socket: Socket }> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(baseUrl).port) });
  const session = connectHttp2(baseUrl, { createConnection: () => socket });
  session.on('error', () => {});
  hooks.add(async () => session.destroy());
  await once(session, 'remoteSettings');
  return { session, socket };
}

/**
 * Writes to each, all at once, until it is all on its way, the server has closed the connection or takes no more.
 *
 * @returns how many bytes went out
 */
export async function writeToAll(sockets: readonly Socket[], bytes: Buffer): Promise<number> {
  for (const socket of sockets) if (!socket.destroyed) socket.write(bytes);
  const left = () => sockets.reduce((sum, one) => sum + (one.destroyed ? 0 : one.writableLength), 0);
  for (let last = left(), movedMs = performance.now(); last > 0; ) {
    await delay(50);
    const now = left();
    if (now !== last) movedMs = performance.now();
    else if (performance.now() - movedMs > STALLED_MS) break;
    last = now;
  }
  return sockets.reduce((sum, one) => sum + one.bytesWritten - one.writableLength, 0);
}

/** Reads and drops what comes on a connection, so that answers are not what is measured. */
export function dropAnswers(sockets: readonly Socket[]): void {
  for (const socket of sockets) socket.resume();
}

async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  return socket;
}
