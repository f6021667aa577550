import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

const START = 'HTTP/1.1 100';
const END = '\r\n\r\n';
/** What comes beyond so many bytes before an answer is handed on, for undici to refuse: a receiver could send them without end. */
const MAX_INTERIM_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Connections on which a receiver may answer `100 Continue` (RFC 9110, section 15.2.1) before its answer: undici takes
 * that for a bad response, so it never sees it.
 */
export function acceptingContinue(connect: buildConnector.connector): buildConnector.connector {
  return (target, callback) =>
    connect(target, (...args) => {
      if (args[0] === null) dropContinue(args[1]);
      callback(...args);
    });
}

/** An answer begins with what comes first after a request was written: one is under way at a time. */
function dropContinue(socket: Socket): void {
  const read = socket.read.bind(socket);
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  let isStart = true;
  let left = MAX_INTERIM_BYTES;
  let held: Buffer = NOTHING;
  const writeAndExpect = (...args: unknown[]) => {
    isStart = true;
    left = MAX_INTERIM_BYTES;
    return write(...args);
  };
  const readAnswer = (size?: number): Buffer | null => {
    for (;;) {
      const chunk: Buffer | null = read(size);
      if (chunk === null || !isStart) return chunk;
      const before = Buffer.concat([held, chunk]);
      held = withoutContinue(before, left);
      left -= before.length - held.length;
      if (held.length === 0 || (isOpen(held) && held.length < left)) continue;
      const answer = held;
      held = NOTHING;
      isStart = false;
      return answer;
    }
  };
  Object.assign(socket, { write: writeAndExpect, read: readAnswer });
}

/** Leaves out every complete head of `100 Continue` at the beginning, as far as they begin within so many bytes. */
function withoutContinue(bytes: Buffer, within: number): Buffer {
  let rest = bytes;
  while (bytes.length - rest.length < within && rest.toString('latin1', 0, START.length) === START) {
    const end = rest.indexOf(END);
    if (end < 0) break;
    rest = rest.subarray(end + END.length);
  }
  return rest;
}

/** Whether more must come before it is known not to be a head of `100 Continue`. */
function isOpen(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, START.length);
  return START.startsWith(start);
}
