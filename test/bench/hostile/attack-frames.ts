// A connection of HTTP/2 whose frames are written by hand: no client sends as small ones.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Target } from './attack.js';

/** A connection, which the service may close. */
export type Frames = {
  /** Sends so many requests, all alike, and waits until each is answered, or cancels each at once. */
  request: (wanted: {
    headers: Record<string, string>;
    body: Buffer | undefined;
    count: number;
    isCancelled: boolean;
  }) => Promise<void>;
  /** Begins a request whose body follows. */
  begin: (headers: Record<string, string>) => Promise<void>;
  /** Sends so many frames, all alike. */
  send: (type: number, payload: Buffer, streamId: number, count: number) => Promise<void>;
  isClosed: () => boolean;
  /** Closes it. Returns how many bytes were sent, with those of opening it. */
  close: () => number;
};

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const [DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE] = [0, 1, 3, 4, 8];
const [END_STREAM, END_HEADERS, ACK] = [1, 4, 1];
const HEAD_BYTES = 9;
const MAX_WINDOW = 2 ** 31 - 1;
/** Opening a connection takes three packets of 60 bytes at the least. */
const OPENING_BYTES = 180;
const CHUNK_FRAMES = 1_000;
const STALLED_MS = 3_000;
/** Indexes of RFC 7541, appendix A, of what is sent; other names go out in full. */
const STATIC = new Map([
  [':authority', 1],
  [':path', 4],
  ['content-type', 31],
]);
const METHODS: Readonly<Record<string, number>> = { GET: 0x82, POST: 0x83 };
const SCHEME_HTTP = 0x86;
const FIRST_DYNAMIC = 62;

/** Opens a connection that takes answers of any length. */
export async function openFrames({ port, hooks }: Target): Promise<Frames> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  hooks.add(async () => void socket.destroy());
  await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => []);
  const answers = countAnswers(socket);
  const windows = Buffer.alloc(6);
  windows.writeUInt16BE(4);
  windows.writeUInt32BE(MAX_WINDOW, 2);
  const more = Buffer.alloc(4);
  more.writeUInt32BE(MAX_WINDOW - 65_535);
  const start = [PREFACE, frame(SETTINGS, 0, 0, windows), frame(WINDOW_UPDATE, 0, 0, more)];
  socket.write(Buffer.concat([...start, frame(SETTINGS, ACK, 0, Buffer.alloc(0))]));
  let nextId = 1;
  let isIndexed = false;
  const head = (headers: Record<string, string>, flags: number) => {
    const block = isIndexed ? indexed(headers) : literal(headers);
    isIndexed = true;
    const bytes = frame(HEADERS, flags | END_HEADERS, nextId, block);
    nextId += 2;
    return bytes;
  };
  return {
    isClosed: () => socket.destroyed || socket.readableEnded,
    async request({ headers, body, count, isCancelled }) {
      const frames: Buffer[] = [];
      for (let i = 0; i < count; i++) {
        const id = nextId;
        frames.push(head(headers, body === undefined ? END_STREAM : 0));
        if (body !== undefined) frames.push(frame(DATA, END_STREAM, id, body));
        if (isCancelled) frames.push(frame(RST_STREAM, 0, id, Buffer.alloc(4)));
      }
      const wanted = answers.count() + (isCancelled ? 0 : count);
      await write(socket, Buffer.concat(frames));
      await answers.until(wanted);
    },
    begin: async (headers) => write(socket, head(headers, 0)),
    async send(type, payload, streamId, count) {
      const chunk = Buffer.concat(
        Array.from({ length: CHUNK_FRAMES }, () => frame(type, 0, streamId, payload)),
      );
      for (let sent = 0; sent < count && !socket.destroyed; sent += CHUNK_FRAMES) await write(socket, chunk);
    },
    close() {
      const bytes = OPENING_BYTES + socket.bytesWritten - socket.writableLength;
      socket.destroy();
      return bytes;
    },
  };
}

function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes.writeUInt8(type, 3);
  bytes.writeUInt8(flags, 4);
  bytes.writeUInt32BE(streamId, 5);
  bytes.set(payload, HEAD_BYTES);
  return bytes;
}

/** All fields in full, which the service adds to its table (RFC 7541, section 6.2.1). */
function literal(headers: Record<string, string>): Buffer {
  const fields = fieldsOf(headers).map(([name, value]) => {
    const index = STATIC.get(name);
    const start = index === undefined ? [0x40, name.length, ...Buffer.from(name)] : [0x40 | index];
    return Buffer.from([...start, value.length, ...Buffer.from(value)]);
  });
  return Buffer.concat([Buffer.from([METHODS[headers[':method'] ?? ''] ?? 0, SCHEME_HTTP]), ...fields]);
}

/** The same by the table: a byte a field. */
function indexed(headers: Record<string, string>): Buffer {
  const count = fieldsOf(headers).length;
  const fields = Array.from({ length: count }, (_, i) => 0x80 | (FIRST_DYNAMIC + i));
  return Buffer.from([METHODS[headers[':method'] ?? ''] ?? 0, SCHEME_HTTP, ...fields.reverse()]);
}

function fieldsOf({ ':method': _method, ...others }: Record<string, string>): [string, string][] {
  return Object.entries({ ...others, ':authority': 'a' }).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Waits until the service has taken it, or takes no more. */
async function write(socket: Socket, bytes: Buffer): Promise<void> {
  if (socket.destroyed || socket.write(bytes)) return;
  // What waits for an event fails with the connection.
  const moved = [once(socket, 'drain'), once(socket, 'close')].map((event) => event.catch(() => []));
  await Promise.race([...moved, delay(STALLED_MS)]);
}

/** Counts the streams that the service ends, and drops what they say. */
function countAnswers(socket: Socket): { count: () => number; until: (wanted: number) => Promise<void> } {
  let count = 0;
  let skipped = 0;
  let rest = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest.subarray(skipped), chunk]);
    skipped = 0;
    for (let at = 0; ; ) {
      const length = rest.length - at < HEAD_BYTES ? undefined : HEAD_BYTES + rest.readUIntBE(at, 3);
      if (length === undefined || rest.length - at < length) {
        skipped = at;
        return;
      }
      const type = rest[at + 3] ?? 0;
      const isLast = (type === DATA || type === HEADERS) && ((rest[at + 4] ?? 0) & END_STREAM) !== 0;
      if (isLast || type === RST_STREAM) count++;
      at += length;
    }
  });
  return {
    count: () => count,
    async until(wanted) {
      for (let movedMs = performance.now(), last = count; count < wanted && !socket.destroyed; ) {
        await delay(1);
        if (count !== last) movedMs = performance.now();
        else if (performance.now() - movedMs > STALLED_MS) socket.destroy();
        last = count;
      }
    },
  };
}
