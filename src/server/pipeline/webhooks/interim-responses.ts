import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';

const START = 'HTTP/1.1 100';
const END = '\r\n\r\n';
/** More bytes than this before a response are passed on, and undici rejects them: a receiver could send them without end. */
const MAX_INTERIM_BYTES = 16 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Makes connections that drop `100 Continue` (RFC 9110, section 15.2.1) before a response: undici would reject it as a
 * bad response.
 */
export function acceptingContinue(connect: buildConnector.connector): buildConnector.connector {
  return (target, callback) =>
    connect(target, (...args) => {
      if (args[0] === null) dropContinue(args[1]);
      callback(...args);
    });
}

/** A response begins with the first bytes after a request was written; one request is in flight at a time. */
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

/** Removes every complete `100 Continue` head at the beginning that starts within `within` bytes. */
function withoutContinue(bytes: Buffer, within: number): Buffer {
  let rest = bytes;
  while (bytes.length - rest.length < within && rest.toString('latin1', 0, START.length) === START) {
    const end = rest.indexOf(END);
    if (end < 0) break;
    rest = rest.subarray(end + END.length);
  }
  return rest;
}

/** Whether the bytes so far could still become a `100 Continue` head. */
function isOpen(bytes: Buffer): boolean {
  const start = bytes.toString('latin1', 0, START.length);
  return START.startsWith(start);
}
