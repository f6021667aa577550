/** Frames that bring nothing forward, and requests beyond what a connection takes at once. */
import { constants } from 'node:http2';
import t from 'tap';
import {
  EMPTY_SETTINGS,
  frame,
  openRawHttp2,
  POST_BLOCK,
  uint32,
} from '../../../support/calling/h2-frames.js';
import { livesOn } from '../../../support/calling/surfaces.js';
import { startApiServer } from '../../../support/servers/api-server.js';

const { NGHTTP2_ENHANCE_YOUR_CALM: CALM, NGHTTP2_REFUSED_STREAM: REFUSED_STREAM } = constants;
const [DATA, HEADERS, PRIORITY, RST, PING, GOAWAY, WINDOW] = [0, 1, 2, 3, 6, 7, 8];
const [END_HEADERS, BOTH] = [4, 5];

const open = (id: number) => frame(HEADERS, END_HEADERS, id, POST_BLOCK);

t.test('floods end with ENHANCE_YOUR_CALM', async (t) => {
  const api = await startApiServer(t);
  const many = (one: Buffer) => Buffer.concat(Array.from({ length: 4_000 }, () => one));
  const floods: [string, Buffer][] = [
    ['PING', many(frame(PING, 0, 0, Buffer.alloc(8)))],
    ['SETTINGS', many(EMPTY_SETTINGS)],
    ['PRIORITY', many(frame(PRIORITY, 0, 1, Buffer.alloc(5)))],
    ['WINDOW_UPDATE', many(frame(WINDOW, 0, 0, uint32(1)))],
    ['unknown frames', many(frame(0xee, 0, 0))],
    ['DATA without content', Buffer.concat([open(1), many(frame(DATA, 0, 1))])],
    ['requests that are reset', rounds((id) => [open(id), frame(RST, 0, id, uint32(8))])],
    ['requests that are malformed', rounds((id) => [frame(HEADERS, BOTH, id, Buffer.from([0x82]))])],
    ['requests beyond the streams that may be open', rounds((id) => [open(id)])],
  ];
  for (const [what, bytes] of floods) {
    const connection = await openRawHttp2(api.port);
    connection.send(bytes);
    const goaway = await connection.find(({ type }) => type === GOAWAY);
    t.equal(goaway.payload.readUInt32BE(4), CALM, what);
    await connection.closed;
  }
  await livesOn(t, api);
});

function rounds(framesOf: (id: number) => Buffer[]): Buffer {
  return Buffer.concat(Array.from({ length: 4_000 }, (_, i) => framesOf(i * 2 + 1)).flat());
}

t.test('streams beyond the maximum are reset for another attempt', async (t) => {
  const api = await startApiServer(t, { limits: { maxStreams: 2 } });
  const connection = await openRawHttp2(api.port);
  connection.send(open(1), open(3), open(5));
  const reset = await connection.find(({ type }) => type === RST);
  t.equal(reset.streamId, 5);
  t.equal(reset.payload.readUInt32BE(), REFUSED_STREAM);
  connection.socket.destroy();
});
