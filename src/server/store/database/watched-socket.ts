import { connect, type Socket } from 'node:net';

/** Where the driver wants to connect to: the hosts of the URL with their ports, or a Unix socket. */
type Place = { host: string[]; port: number[]; path: string | false };

/**
 * Makes the driver's sockets, to the host `at` a place in the list, each closed once nothing has come or gone for `silenceMs`. Neither
 * the driver nor the system does so: what was sent to a machine that is gone is sent again for a quarter of an hour.
 */
export function watchedSockets(silenceMs: number): (place: Place, at?: number) => Socket {
  return ({ host, port, path }, at = 0) => {
    const name = host[at] ?? '';
    const socket = path === false ? connect(port[at] ?? 0, name) : connect(path);
    closeWhenSilent(socket, silenceMs);
    // The driver takes the name for the server's certificate from here.
    return Object.assign(socket, { host: name });
  };
}

/**
 * By the counters, which hold under TLS as well; there the driver takes all listeners off the socket. What is sent is no
 * sign of life: the first of it since the last answer begins the wait, more of it does not prolong it.
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
