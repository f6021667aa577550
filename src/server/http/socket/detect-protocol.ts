import type { Socket } from 'node:net';

/** How the HTTP/2 connection preface begins; no HTTP/1.1 method does. */
const PREFACE = Buffer.from('PRI ');

/**
 * Looks at the first bytes of a connection, puts them back, and says what it speaks. A connection that has not sent
 * them in time is closed, as nothing is served yet.
 */
export function detectProtocol(
  socket: Socket,
  timeoutMs: number,
  serve: (protocol: 'http1' | 'h2') => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const head = seen.subarray(0, PREFACE.length);
    const maybeH2 = PREFACE.subarray(0, head.length).equals(head);
    if (maybeH2 && head.length < PREFACE.length) return;
    release();
    socket.pause();
    socket.unshift(seen);
    serve(maybeH2 ? 'h2' : 'http1');
    // Node's HTTP/2 reads what was put back in its next tick, and would miss it were the socket flowing; later the
    // socket has to flow, or its end is never noticed.
    if (maybeH2) setImmediate(() => socket.resume());
    else socket.resume();
  };
  const onEnd = () => socket.destroy();
  const onError = () => socket.destroy();
  const release = () => {
    clearTimeout(timer);
    socket.off('data', onData);
    socket.off('end', onEnd);
    socket.off('error', onError);
    socket.off('close', release);
  };
  socket.on('data', onData);
  socket.once('end', onEnd);
  socket.once('error', onError);
  socket.once('close', release);
}
