import { connect, type Socket } from 'node:net';

/** The driver's target: the host of the URL with its port, or a Unix socket. */
type Place = { host: string[]; port: number[]; path: string | false };

/** Opens a socket to one server. */
export type OpenSocket = (place: Place) => Socket;

/**
 * Creates the driver's sockets. Each is closed after `silenceMs` without traffic, unless that is
 * undefined. Neither the driver nor the system does so: TCP retransmits to a machine that is gone for a quarter of an hour.
 */
export function watchedSockets(silenceMs: number | undefined): OpenSocket {
  return ({ host: [host = ''], port: [port = 0], path }) => {
    const socket = path === false ? connect(port, host) : connect(path);
    if (silenceMs !== undefined) closeWhenSilent(socket, silenceMs);
    // The driver reads the name in the server's certificate from here, and what its errors say.
    return Object.assign(socket, { host, port });
  };
}

/**
 * Uses the byte counters, which work under TLS too; there the driver removes all listeners of the socket. Sent bytes
 * are no sign of life: the first since the last received byte start the timeout, more do not extend it.
 */
function closeWhenSilent(socket: Socket, silenceMs: number): void {
  const seen = { read: 0, written: 0 };
  let isAsked = false;
  let sinceMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const { bytesRead, bytesWritten } = socket;
    if (bytesRead !== seen.read) {
      isAsked = false;
      sinceMs = nowMs;
    } else if (bytesWritten !== seen.written && !isAsked) {
      isAsked = true;
      sinceMs = nowMs;
    } else if (nowMs - sinceMs >= silenceMs) {
      socket.destroy();
    }
    seen.read = bytesRead;
    seen.written = bytesWritten;
    if (socket.destroyed) clearInterval(timer);
  }, silenceMs / 10).unref();
}
