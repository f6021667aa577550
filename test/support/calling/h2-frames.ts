// A connection of HTTP/2 whose frames are written by hand, for what no client sends.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { openSocket } from './raw-http.js';

export type SeenFrame = { type: number; flags: number; streamId: number; payload: Buffer };

export type RawHttp2 = {
  socket: Socket;
  /** All that the server has sent so far. */
  seen: SeenFrame[];
  send: (...frames: Buffer[]) => void;
  /** Resolves with the first frame that fits, once it has come; rejects when the connection ends without. */
  find: (fits: (frame: SeenFrame) => boolean) => Promise<SeenFrame>;
  /** Resolves when the server has closed the connection. */
  closed: Promise<unknown>;
};

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const EMPTY_SETTINGS = frame(4, 0, 0);

/** `GET /v1/x` of `a`, every field literal and in no table. */
const GET_BLOCK = Buffer.concat([
  Buffer.from([0x82, 0x86, 0x04, 5]),
  Buffer.from('/v1/x'),
  Buffer.from([0x01, 1]),
  Buffer.from('a'),
]);

/** The same by POST. */
export const POST_BLOCK = Buffer.concat([Buffer.from([0x83]), GET_BLOCK.subarray(1)]);

export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** An integer of 32 bits, as WINDOW_UPDATE and RST_STREAM carry it. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Connects and sends preface and SETTINGS, or `start` in their place. */
export async function openRawHttp2(
  port: number,
  start: Buffer = Buffer.concat([PREFACE, EMPTY_SETTINGS]),
): Promise<RawHttp2> {
  const socket = await openSocket(port);
  socket.on('error', () => {});
  const seen: SeenFrame[] = [];
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3);
      const payload = rest.subarray(9, end);
      seen.push({ type: rest[3] ?? 0, flags: rest[4] ?? 0, streamId: rest.readUInt32BE(5), payload });
      rest = rest.subarray(end);
    }
  });
  const closed = once(socket, 'close');
  socket.write(start);
  return {
    socket,
    seen,
    closed,
    send: (...frames) => void socket.write(Buffer.concat(frames)),
    async find(fits) {
      for (;;) {
        const found = seen.find(fits);
        if (found !== undefined) return found;
        if (socket.destroyed) throw new Error('the connection is closed');
        await Promise.race([once(socket, 'data'), closed]);
      }
    },
  };
}
