/** What clients must not send, and with what the server ends the stream or the connection (RFC 9113). */
import { constants } from 'node:http2';
import t from 'tap';
import {
  EMPTY_SETTINGS,
  frame,
  GET_BLOCK,
  openRawHttp2,
  POST_BLOCK,
  PREFACE,
  type RawHttp2,
  uint32,
} from '../../../support/calling/h2-frames.js';
import { livesOn } from '../../../support/calling/surfaces.js';
import { FUZZ } from '../../../support/fuzz.js';
import { startApiServer } from '../../../support/servers/api-server.js';

const {
  NGHTTP2_NO_ERROR: NO_ERROR,
  NGHTTP2_PROTOCOL_ERROR: PROTOCOL_ERROR,
  NGHTTP2_FLOW_CONTROL_ERROR: FLOW_CONTROL_ERROR,
  NGHTTP2_FRAME_SIZE_ERROR: FRAME_SIZE_ERROR,
  NGHTTP2_COMPRESSION_ERROR: COMPRESSION_ERROR,
  NGHTTP2_STREAM_CLOSED: STREAM_CLOSED,
  NGHTTP2_ENHANCE_YOUR_CALM: CALM,
} = constants;
const [DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION] = [
  0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
];
const [END_STREAM, END_HEADERS, PADDED, BOTH] = [1, 4, 8, 5];
const MAX_WINDOW = 2 ** 31 - 1;

/** A literal field in no table. */
function field(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

const head = (...more: Buffer[]) => frame(HEADERS, BOTH, 1, Buffer.concat([GET_BLOCK, ...more]));
const open = (id: number, ...more: Buffer[]) =>
  frame(HEADERS, END_HEADERS, id, Buffer.concat([POST_BLOCK, ...more]));
const setting = (id: number, value: number) => Buffer.concat([Buffer.from([0, id]), uint32(value)]);

/** What ends the connection, with the code of GOAWAY. */
const OF_CONNECTIONS: [what: string, code: number, frames: Buffer[]][] = [
  ['DATA of stream 0', PROTOCOL_ERROR, [frame(DATA, 0, 0, Buffer.from('x'))]],
  ['DATA of an idle stream', PROTOCOL_ERROR, [frame(DATA, 0, 5, Buffer.from('x'))]],
  ['more padding than payload', PROTOCOL_ERROR, [open(1), frame(DATA, PADDED, 1, Buffer.from([9, 1]))]],
  ['padding without its length', FRAME_SIZE_ERROR, [open(1), frame(DATA, PADDED, 1)]],
  ['HEADERS of an even stream', PROTOCOL_ERROR, [frame(HEADERS, BOTH, 2, GET_BLOCK)]],
  ['HEADERS of stream 0', PROTOCOL_ERROR, [frame(HEADERS, BOTH, 0, GET_BLOCK)]],
  ['HEADERS cut in their priority', FRAME_SIZE_ERROR, [frame(HEADERS, BOTH | 32, 1, Buffer.alloc(3))]],
  ['a block that cannot be decoded', COMPRESSION_ERROR, [frame(HEADERS, BOTH, 1, Buffer.from([0x80]))]],
  ['a block that is interrupted', PROTOCOL_ERROR, [frame(HEADERS, 0, 1, GET_BLOCK), frame(PING, 0, 0)]],
  ['CONTINUATION of nothing', PROTOCOL_ERROR, [frame(CONTINUATION, END_HEADERS, 1, GET_BLOCK)]],
  [
    'CONTINUATION of another stream',
    PROTOCOL_ERROR,
    [frame(HEADERS, 0, 1, GET_BLOCK), frame(CONTINUATION, END_HEADERS, 3)],
  ],
  ['PRIORITY of another size', FRAME_SIZE_ERROR, [frame(PRIORITY, 0, 1, Buffer.alloc(4))]],
  ['PRIORITY of stream 0', PROTOCOL_ERROR, [frame(PRIORITY, 0, 0, Buffer.alloc(5))]],
  ['RST_STREAM of another size', FRAME_SIZE_ERROR, [open(1), frame(RST, 0, 1, Buffer.alloc(3))]],
  ['RST_STREAM of an idle stream', PROTOCOL_ERROR, [frame(RST, 0, 7, uint32(8))]],
  ['SETTINGS of a stream', PROTOCOL_ERROR, [frame(SETTINGS, 0, 1)]],
  ['SETTINGS of another size', FRAME_SIZE_ERROR, [frame(SETTINGS, 0, 0, Buffer.alloc(5))]],
  ['SETTINGS acknowledged with a payload', FRAME_SIZE_ERROR, [frame(SETTINGS, 1, 0, Buffer.alloc(6))]],
  ['ENABLE_PUSH of 2', PROTOCOL_ERROR, [frame(SETTINGS, 0, 0, setting(2, 2))]],
  ['a window beyond its maximum', FLOW_CONTROL_ERROR, [frame(SETTINGS, 0, 0, setting(4, 2 ** 31))]],
  ['frames of less than 16 KiB', PROTOCOL_ERROR, [frame(SETTINGS, 0, 0, setting(5, 16_383))]],
  ['frames of more than 16 MiB', PROTOCOL_ERROR, [frame(SETTINGS, 0, 0, setting(5, 2 ** 24))]],
  ['PUSH_PROMISE', PROTOCOL_ERROR, [frame(PUSH, END_HEADERS, 1, Buffer.alloc(5))]],
  ['PING of another size', FRAME_SIZE_ERROR, [frame(PING, 0, 0, Buffer.alloc(7))]],
  ['PING of a stream', PROTOCOL_ERROR, [frame(PING, 0, 1, Buffer.alloc(8))]],
  ['GOAWAY of another size', FRAME_SIZE_ERROR, [frame(GOAWAY, 0, 0, Buffer.alloc(7))]],
  ['GOAWAY of a stream', PROTOCOL_ERROR, [frame(GOAWAY, 0, 1, Buffer.alloc(8))]],
  ['WINDOW_UPDATE of another size', FRAME_SIZE_ERROR, [frame(WINDOW, 0, 0, Buffer.alloc(3))]],
  ['WINDOW_UPDATE by 0', PROTOCOL_ERROR, [frame(WINDOW, 0, 0, uint32(0))]],
  ['WINDOW_UPDATE of an idle stream', PROTOCOL_ERROR, [frame(WINDOW, 0, 9, uint32(1))]],
  ['WINDOW_UPDATE beyond the maximum', FLOW_CONTROL_ERROR, [frame(WINDOW, 0, 0, uint32(MAX_WINDOW))]],
  ['a frame of more than 16 KiB', FRAME_SIZE_ERROR, [open(1), frame(DATA, 0, 1, Buffer.alloc(16_385))]],
  [
    'HEADERS of a stream that is over',
    STREAM_CLOSED,
    [open(1), frame(RST, 0, 1, uint32(8)), frame(HEADERS, BOTH, 1, GET_BLOCK)],
  ],
  [
    'a setting that lifts an open window beyond its maximum',
    FLOW_CONTROL_ERROR,
    [open(1), frame(WINDOW, 0, 1, uint32(MAX_WINDOW - 65_535)), frame(SETTINGS, 0, 0, setting(4, 65_536))],
  ],
  [
    'a block of 70 KB',
    CALM,
    [
      frame(HEADERS, 0, 1, GET_BLOCK),
      ...Array.from({ length: 5 }, () => frame(CONTINUATION, 0, 1, Buffer.alloc(14_000))),
    ],
  ],
  [
    'CONTINUATION over and over',
    CALM,
    [frame(HEADERS, 0, 1, GET_BLOCK), ...Array.from({ length: 40 }, () => frame(CONTINUATION, 0, 1))],
  ],
];

/** What resets the stream 1, with the code of RST_STREAM. */
const OF_STREAMS: [what: string, code: number, frames: Buffer[]][] = [
  ['a name in upper case', PROTOCOL_ERROR, [head(field('X-a', 'b'))]],
  ['a name with a space', PROTOCOL_ERROR, [head(field('x a', 'b'))]],
  ['no name', PROTOCOL_ERROR, [head(field('', 'b'))]],
  ['a value with a line break', PROTOCOL_ERROR, [head(field('x', 'a\r\nb: c'))]],
  ['a value with NUL', PROTOCOL_ERROR, [head(field('x', 'a\0'))]],
  ['Connection', PROTOCOL_ERROR, [head(field('connection', 'close'))]],
  ['Transfer-Encoding', PROTOCOL_ERROR, [head(field('transfer-encoding', 'chunked'))]],
  ['TE other than trailers', PROTOCOL_ERROR, [head(field('te', 'gzip'))]],
  ['an unknown pseudo-header field', PROTOCOL_ERROR, [head(field(':x', 'a'))]],
  ['one of responses', PROTOCOL_ERROR, [head(field(':status', '200'))]],
  ['one that comes twice', PROTOCOL_ERROR, [head(Buffer.from([0x82]))]],
  ['one after a field', PROTOCOL_ERROR, [head(field('x', 'a'), field(':authority', 'b'))]],
  ['no path', PROTOCOL_ERROR, [frame(HEADERS, BOTH, 1, Buffer.from([0x82, 0x86]))]],
  ['a path that does not begin with a slash', PROTOCOL_ERROR, [withPath('v1/x')]],
  ['a path with a space', PROTOCOL_ERROR, [withPath('/v1/x y')]],
  ['CONNECT with a path', PROTOCOL_ERROR, [frame(HEADERS, BOTH, 1, connectBlock(true))]],
  ['two lengths', PROTOCOL_ERROR, [head(field('content-length', '0'), field('content-length', '1'))]],
  ['a length that is no number', PROTOCOL_ERROR, [head(field('content-length', '-1'))]],
  ['a length without a body', PROTOCOL_ERROR, [head(field('content-length', '1'))]],
  [
    'a body longer than its length',
    PROTOCOL_ERROR,
    [open(1, field('content-length', '1')), frame(DATA, 0, 1, Buffer.from('ab'))],
  ],
  [
    'a body shorter than its length',
    PROTOCOL_ERROR,
    [open(1, field('content-length', '3')), frame(DATA, END_STREAM, 1, Buffer.from('ab'))],
  ],
  ['trailers without an end', PROTOCOL_ERROR, [open(1), frame(HEADERS, END_HEADERS, 1, field('x', 'a'))]],
  ['trailers with a path', PROTOCOL_ERROR, [open(1), frame(HEADERS, BOTH, 1, field(':path', '/'))]],
  ['WINDOW_UPDATE by 0', PROTOCOL_ERROR, [open(1), frame(WINDOW, 0, 1, uint32(0))]],
  ['a window beyond its maximum', FLOW_CONTROL_ERROR, [open(1), frame(WINDOW, 0, 1, uint32(MAX_WINDOW))]],
  ['fields of more than 16 KiB', CALM, [head(...Array.from({ length: 500 }, () => field('x', 'a')))]],
  [
    'DATA after the end',
    STREAM_CLOSED,
    [open(1), frame(DATA, END_STREAM, 1), frame(DATA, 0, 1, Buffer.from('x'))],
  ],
];

function withPath(path: string): Buffer {
  const block = [
    Buffer.from([0x82, 0x86, 0x04, path.length]),
    Buffer.from(path),
    Buffer.from([0x01, 1, 0x61]),
  ];
  return frame(HEADERS, BOTH, 1, Buffer.concat(block));
}

function connectBlock(hasPath: boolean): Buffer {
  const method = Buffer.concat([
    Buffer.from([0x02, 7]),
    Buffer.from('CONNECT'),
    Buffer.from([0x01, 1, 0x61]),
  ]);
  return hasPath ? Buffer.concat([method, Buffer.from([0x84])]) : method;
}

/** Resolves with the code of GOAWAY. */
async function goawayOf(connection: RawHttp2): Promise<number> {
  return (await connection.find(({ type }) => type === GOAWAY)).payload.readUInt32BE(4);
}

t.test('what breaks the protocol ends its stream or its connection, and nothing else', async (t) => {
  const api = await startApiServer(t);
  for (const [what, code, frames] of OF_CONNECTIONS) {
    const connection = await openRawHttp2(api.port);
    connection.send(...frames);
    t.equal(await goawayOf(connection), code, what);
    await connection.closed;
  }
  for (const [what, code, frames] of OF_STREAMS) {
    const connection = await openRawHttp2(api.port);
    connection.send(...frames, frame(PING, 0, 0, Buffer.alloc(8, 1)));
    const reset = await connection.find(({ type, streamId }) => type === RST && streamId === 1);
    t.equal(reset.payload.readUInt32BE(), code, what);
    await connection.find(({ type, flags }) => type === PING && flags === 1);
    connection.socket.destroy();
  }
  for (const start of [EMPTY_SETTINGS, Buffer.concat([PREFACE, head()]), Buffer.from('PRI * HTTP/1.1\r\n')]) {
    const connection = await openRawHttp2(api.port, start);
    await connection.closed;
  }
  await livesOn(t, api);
});

t.test('after the response, a request has to go on as it should, and may not go on for long', async (t) => {
  const api = await startApiServer(t);
  const answered = async (...more: Buffer[]) => {
    const connection = await openRawHttp2(api.port);
    connection.send(open(1, ...more));
    await connection.find(({ streamId, flags }) => streamId === 1 && (flags & END_STREAM) !== 0);
    return connection;
  };
  const resetOf = async ({ find }: RawHttp2) =>
    (await find(({ type }) => type === RST)).payload.readUInt32BE();

  const malformed = await answered();
  malformed.send(frame(HEADERS, END_HEADERS, 1, field('x', 'a')));
  t.equal(await resetOf(malformed), PROTOCOL_ERROR);
  malformed.socket.destroy();

  const large = await answered();
  const part = frame(DATA, 0, 1, Buffer.alloc(16_384));
  large.send(part, part);
  await large.find(({ type, streamId }) => type === WINDOW && streamId === 1);
  large.send(part, part, frame(DATA, 0, 1, Buffer.from('x')));
  t.equal(await resetOf(large), NO_ERROR);
  large.socket.destroy();

  const short = await answered(field('content-length', '3'));
  short.send(frame(DATA, END_STREAM, 1, Buffer.from('x')), frame(PING, 0, 0, Buffer.alloc(8, 1)));
  await short.find(({ type, flags }) => type === PING && flags === 1);
  t.notOk(short.seen.some(({ type }) => type === RST));
  short.send(frame(HEADERS, BOTH, 1, GET_BLOCK));
  t.equal(await goawayOf(short), STREAM_CLOSED);
  await short.closed;
});

t.test('what is unusual and allowed is answered', async (t) => {
  const api = await startApiServer(t);
  const connection = await openRawHttp2(api.port, Buffer.alloc(0));
  const padded = Buffer.concat([Buffer.from([3]), GET_BLOCK, Buffer.alloc(3)]);
  const priority = Buffer.concat([uint32(0), Buffer.from([9]), GET_BLOCK]);
  const bytes = Buffer.concat([
    ...[PREFACE, EMPTY_SETTINGS, frame(0xbe, 0xff, 77, Buffer.from('unknown'))],
    ...[frame(SETTINGS, 0, 0, setting(99, 1)), frame(PRIORITY, 0, 9, Buffer.alloc(5))],
    ...[frame(HEADERS, BOTH | PADDED, 1, padded), frame(HEADERS, BOTH | 32, 3, priority)],
    ...[frame(HEADERS, END_STREAM, 5, GET_BLOCK.subarray(0, 3))],
    frame(CONTINUATION, END_HEADERS, 5, GET_BLOCK.subarray(3)),
    ...[open(7), frame(DATA, PADDED, 7, Buffer.from([2, 1, 0, 0])), frame(HEADERS, BOTH, 7, field('x', 'a'))],
    frame(HEADERS, BOTH, 9, Buffer.concat([GET_BLOCK, field('cookie', 'a=b'), field('cookie', 'c=d')])),
    frame(HEADERS, BOTH, 11, connectBlock(false)),
  ]);
  connection.socket.setNoDelay(true);
  for (const byte of bytes) connection.send(Buffer.from([byte]));
  for (const id of [1, 3, 5, 7, 9, 11]) {
    const ended = ({ streamId, flags }: { streamId: number; flags: number }) =>
      streamId === id && (flags & END_STREAM) !== 0;
    await connection.find(ended);
  }
  t.notOk(connection.seen.some(({ type }) => type === RST || type === GOAWAY));
  connection.socket.destroy();
});

t.test('frames at random end their connection alone', async (t) => {
  const api = await startApiServer(t);
  let seed = FUZZ.seed;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const bytes = (count: number) => Buffer.from(Array.from({ length: count }, () => random(256)));
  const valid = [...OF_STREAMS, ...OF_CONNECTIONS].flatMap(([, , frames]) => frames);
  const anyFrame = () => {
    if (random(3) === 0) return frame(random(12), random(256), random(12), bytes(random(40)));
    const known = Buffer.from(valid[random(valid.length)] ?? EMPTY_SETTINGS);
    if (random(2) === 0) known[random(known.length)] = random(256);
    return known;
  };
  for (let i = 0; i < FUZZ.cases * 4; i++) {
    const connection = await openRawHttp2(api.port);
    connection.send(...Array.from({ length: 1 + random(8) }, anyFrame), bytes(random(20)));
    connection.socket.end();
    await connection.closed;
  }
  await livesOn(t, api);
});
