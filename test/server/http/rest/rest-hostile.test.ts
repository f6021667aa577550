import { once } from 'node:events';
import { create } from '@bufbuild/protobuf';
import t from 'tap';
import { EverythingSchema } from '../../../gen/library/v1/library_pb.js';
import {
  ask,
  askJson,
  callHandler,
  codeOf,
  type Library,
  openWire,
  problems,
  startLibrary,
} from './rest-library.js';

const MIB = 2 ** 20;

/** Asserts that the process goes on serving, and that nothing it met was its own fault. */
async function assertAlive(t: Tap, library: Library): Promise<void> {
  t.equal((await ask(library, 'GET /v1/books/still-there')).status, 200, 'the next request is served');
  t.same(library.failures, []);
}
type Tap = Pick<typeof t, 'equal' | 'same'>;

t.test('malformed JSON is rejected and not quoted', async (t) => {
  const library = await startLibrary(t);
  const bodies: (string | Buffer)[] = [
    '{',
    '{"string_field":"secret',
    '{"string_field":"secret"',
    '{]',
    '[',
    '"',
    'nul',
    '{"a":1,}',
    "{'a':1}",
    '{a:1}',
    '\ufeff{}',
    '{"string_field":"a\nsecret"}',
    '{"double_field":01}',
    '{"double_field":NaN}',
    '{} {}',
    '\0',
    '//x',
    ' ',
    Buffer.from([0x22, 0xff, 0x22]),
    Buffer.from('{"string_field":"\xe9"}', 'latin1'),
    Buffer.from('{"string_field":"secret"}', 'utf16le'),
    Buffer.from([...Buffer.from('{"string_field":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')]),
    '['.repeat(100_000),
    '{"a":'.repeat(100_000),
    `${'['.repeat(65)}${']'.repeat(65)}`,
  ];
  for (const body of bodies) {
    const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) };
    const reply = await ask(library, 'POST /v1/echo', { body, headers });
    t.equal(reply.status, 400, body.toString().slice(0, 40));
    t.equal(codeOf(reply), 'request.malformed_json');
    t.notMatch(reply.body, /secret/);
  }
  await assertAlive(t, library);
});

t.test('bodies that try to be more than data are data, or rejected', async (t) => {
  const library = await startLibrary(t);
  t.same(problems(await askJson(library, 'POST /v1/echo', '{"__proto__":{"string_field":"x"}}')), [
    '/__proto__: is not a known member',
  ]);
  t.same(problems(await askJson(library, 'POST /v1/echo', '{"string_map":{"__proto__":"x"}}')), [
    '/string_map/__proto__: must not be named __proto__',
  ]);
  const own = await askJson(
    library,
    'POST /v1/echo',
    '{"struct":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}',
  );
  t.match(own.body, '"struct":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}');
  t.equal(({} as { polluted?: number }).polluted, undefined);
  t.same(problems(await askJson(library, 'POST /v1/echo', '{"string_field":"\\u0000"}')), [
    '/string_field: must not hold U+0000 or a lone surrogate',
  ]);
  t.same(problems(await askJson(library, 'POST /v1/echo', '{"struct":{"a":1e999}}')), [
    '/struct/a: is out of range',
  ]);
  const names = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`n${i}`, i]));
  t.equal(problems(await askJson(library, 'POST /v1/echo', names)).length, 100);
  t.equal(
    (await askJson(library, 'POST /v1/echo', '{"recursive":'.repeat(50) + '{}'.padEnd(52, '}'))).status,
    200,
  );
  await assertAlive(t, library);
});

t.test('a body of the limit is taken, one byte more is not, announced or not', async (t) => {
  const library = await startLibrary(t);
  const json = (bytes: number) => `{"string_field":"${'x'.repeat(bytes - 19)}"}`;
  t.equal((await askJson(library, 'POST /v1/echo', json(MIB))).status, 200);
  const over = await askJson(library, 'POST /v1/echo', json(MIB + 1));
  t.equal(over.status, 413);
  t.equal(codeOf(over), 'request.too_large');
  const chunked = { headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' } };
  t.equal((await ask(library, 'POST /v1/echo', { ...chunked, body: json(MIB) })).status, 200);
  t.equal((await ask(library, 'POST /v1/echo', { ...chunked, body: json(MIB + 1) })).status, 413);
  t.equal((await ask(library, 'POST /v1/upload', { ...chunked, body: json(MIB + 1) })).status, 413);
  await assertAlive(t, library);
});

t.test('an endless body is answered, then its connection ends', async (t) => {
  const library = await startLibrary(t);
  for (const line of ['POST /v1/echo', 'POST /v1/nothing', 'GET /v1/books/b1']) {
    const wire = openWire(library);
    wire.socket.write(
      `${line} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const flood = () => {
      while (!wire.socket.destroyed && wire.socket.write(chunk));
    };
    wire.socket.on('drain', flood);
    flood();
    await wire.closed;
    t.match(wire.received(), /^HTTP\/1\.1 4\d\d /, line);
    t.match(wire.received(), /connection: close\r\n/);
    t.match(wire.received(), /"request_id":"req_\d+"\}\}$/);
  }
  await assertAlive(t, library);
});

t.test('a rejection reaches a client that has announced a huge body and not sent it', async (t) => {
  const library = await startLibrary(t);
  const wire = openWire(library);
  wire.socket.write(
    'POST /v1/echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\n\r\n{',
  );
  await wire.until('"request_id":"req_1"}}');
  t.match(wire.received(), /^HTTP\/1\.1 413 /);
  wire.socket.end();
  await wire.closed;
  await assertAlive(t, library);
});

t.test('a small unread body does not close the connection', async (t) => {
  const library = await startLibrary(t);
  const wire = openWire(library);
  const request = (line: string, body: string) =>
    wire.socket.write(
      `${line} HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  request('POST /v1/nothing', 'ignored');
  await wire.until('req_1"');
  request('POST /v1/echo', 'x'.repeat(60_000));
  await wire.until('req_2"');
  request('GET /v1/books/b1', '');
  await wire.until('"b1"');
  t.same(wire.received().match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 404', 'HTTP/1.1 415', 'HTTP/1.1 200']);
  wire.socket.end();
  await wire.closed;
});

t.test('requests sent at once on one connection are answered in their order', async (t) => {
  const library = await startLibrary(t);
  const wire = openWire(library);
  const one = (id: number) => `GET /v1/books/p${id} HTTP/1.1\r\nhost: x\r\n\r\n`;
  wire.socket.write([1, 2, 3, 4, 5].map(one).join(''));
  await wire.until('"p5"');
  t.same(wire.received().match(/"p\d"/g), ['"p1"', '"p2"', '"p3"', '"p4"', '"p5"']);
  wire.socket.end();
  await wire.closed;
});

t.test('a disconnect ends its call and nothing else', async (t) => {
  let entered: (signal: AbortSignal) => void = () => {};
  const library = await startLibrary(t, {
    invoke: async (call, message) => {
      if (call.method.name !== 'Echo') return callHandler(call, message);
      entered(call.signal());
      await once(call.signal(), 'abort');
      throw new Error('the work was cut short');
    },
  });
  const waiting = new Promise<AbortSignal>((resolve) => {
    entered = resolve;
  });
  const during = openWire(library);
  during.socket.write('GET /v1/echo HTTP/1.1\r\nhost: x\r\n\r\n');
  const signal = await waiting;
  t.equal(signal.aborted, false);
  during.socket.destroy();
  await once(signal, 'abort');

  const closed = new Promise<void>((resolve) => {
    library.server.once('request', (req) => req.once('close', resolve));
  });
  const midBody = openWire(library);
  midBody.socket.write(
    'POST /v1/echo HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a"',
  );
  midBody.socket.end();
  await closed;
  await midBody.closed;
  await assertAlive(t, library);
});

t.test('an answer that cannot be sent is an internal error', async (t) => {
  const library = await startLibrary(t, {
    invoke: async (call, message) => {
      if (call.method.name === 'Echo') return create(EverythingSchema, { int64Field: 2n ** 60n });
      call.responseHeaders.set('x-bad', 'line\nbreak');
      return callHandler(call, message);
    },
  });
  t.equal(codeOf(await ask(library, 'GET /v1/echo')), 'service.internal');
  t.match(library.failures, [RangeError]);
  const reply = await ask(library, 'GET /v1/books/b1');
  t.equal(codeOf(reply), 'service.internal');
  t.equal(reply.headers['x-bad'], undefined);
});
