import { connect as connectHttp2 } from 'node:http2';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { DEFAULT_LIMITS } from '../../../../src/server/http/socket/limits.js';
import { createListener } from '../../../../src/server/http/socket/listener.js';
import { createRequests } from '../../../../src/server/http/socket/requests.js';
import {
  CreateBookRequestSchema,
  FileRequestSchema,
  UpdateBookRequestSchema,
} from '../../../gen/library/v1/library_pb.js';
import { ask, askJson, codeOf, lastMessage, openLibrary, startLibrary } from './rest-library.js';

t.test('a request of JSON and path gets a response in JSON', async (t) => {
  const library = await startLibrary(t);
  const reply = await askJson(library, 'POST /v1/shelves/top%2Fleft/books', {
    title: 'Emma',
    genre: 'novel',
    extra: { z: 1, a: [null] },
    authors: [{ first_name: 'Jane' }],
    pages_by_part: { one: 10 },
    copies: 3,
  });
  t.equal(reply.status, 201);
  t.match(reply.headers, {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(reply.body)),
    'x-request-id': 'req_1',
  });
  t.equal(
    reply.body,
    '{"id":"b1","title":"Emma","genre":"novel","tags":[],"shelf":"top/left","extra":{"a":[null],"z":1},"copies":3}',
  );
  t.same(lastMessage(library, CreateBookRequestSchema), {
    shelf: 'top/left',
    title: 'Emma',
    genre: 'GENRE_NOVEL',
    extra: { z: 1, a: [null] },
    authors: [{ first_name: 'Jane' }],
    pages_by_part: { one: 10 },
    copies: '3',
  });
  t.equal(library.calls[0]?.call.method.name, 'CreateBook');
});

t.test('the ids that clients send do not become ours', async (t) => {
  const library = await startLibrary(t);
  const reply = await ask(library, 'GET /v1/books/b1', { headers: { 'x-request-id': 'req_mine' } });
  t.equal(reply.headers['x-request-id'], 'req_1');
  t.equal(library.calls[0]?.call.requestId, 'req_1');
  t.equal(library.calls[0]?.call.header('x-request-id'), 'req_mine');
});

t.test('methods that a path lacks, unknown paths, HEAD and OPTIONS are answered as HTTP wants', async (t) => {
  const library = await startLibrary(t);
  const missing = await ask(library, 'GET /v1/nothing');
  t.equal(missing.status, 404);
  t.equal(codeOf(missing), 'route.not_found');
  const wrong = await ask(library, 'PUT /v1/books/b1');
  t.equal(wrong.status, 405);
  t.equal(codeOf(wrong), 'request.method_not_allowed');
  t.equal(wrong.headers.allow, 'GET, HEAD, PATCH, DELETE, OPTIONS, PURGE');
  const options = await ask(library, 'OPTIONS /v1/books/b1');
  t.equal(options.status, 204);
  t.equal(options.headers.allow, wrong.headers.allow);
  t.equal(options.headers['x-request-id'], 'req_3');
  t.equal((await ask(library, 'OPTIONS /v1/nothing')).status, 404);
  t.match(await ask(library, 'GET /v1/books/b1/'), { status: 404, body: /leave out the slash at its end/ });
  const get = await ask(library, 'GET /v1/books/b1');
  const head = await ask(library, 'HEAD /v1/books/b1');
  t.equal(head.status, 200);
  t.equal(head.body, '');
  t.equal(head.headers['content-length'], get.headers['content-length']);
  t.equal(head.headers.etag, get.headers.etag);
  t.equal((await ask(library, 'HEAD /v1/nothing')).body, '');
  const none = await ask(library, 'DELETE /v1/books/b1');
  t.equal(none.status, 204);
  t.equal(none.headers['content-length'], undefined);
  t.equal((await ask(library, 'PURGE /v1/books/b1')).body, '{}');
});

t.test('an entity tag saves sending the same bytes again', async (t) => {
  const library = await startLibrary(t);
  const first = await ask(library, 'GET /v1/books/b1');
  const etag = String(first.headers.etag);
  t.match(etag, /^"[\w-]{43}"$/);
  for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await ask(library, 'GET /v1/books/b1', { headers: { 'if-none-match': tag } });
    t.equal(again.status, 304, tag);
    t.equal(again.body, '');
    t.equal(again.headers.etag, etag);
    t.equal(again.headers['content-type'], undefined);
    t.equal(again.headers['cache-control'], 'private, no-cache');
    t.ok(again.headers['x-request-id']);
  }
  for (const tag of ['"other"', 'x', '', etag.slice(1, -1)]) {
    t.equal((await ask(library, 'GET /v1/books/b1', { headers: { 'if-none-match': tag } })).status, 200, tag);
  }
  t.not((await ask(library, 'GET /v1/books/b2')).headers.etag, etag);
  t.equal((await ask(library, 'GET /v1/books')).headers.etag, undefined, 'only where the proto wants one');
});

t.test('no cache keeps an answer, save by its entity tag, and no browser guesses its type', async (t) => {
  const library = await startLibrary(t);
  for (const [line, kept] of [
    ['GET /v1/books/b1', 'private, no-cache'],
    ['GET /v1/books', 'no-store'],
    ['DELETE /v1/books/b1', 'no-store'],
    ['GET /v1/nothing', 'no-store'],
    ['PUT /v1/books/b1', 'no-store'],
  ] as const) {
    const { headers } = await ask(library, line);
    t.match(headers, { 'cache-control': kept, 'x-content-type-options': 'nosniff' }, line);
  }
});

t.test('a body is the whole message, one field, bytes, or rejected', async (t) => {
  const library = await startLibrary(t);
  await askJson(library, 'PATCH /v1/books/b%2F1?dry_run=true', { title: 'Emma' });
  t.same(lastMessage(library, UpdateBookRequestSchema), {
    book: { id: 'b/1', title: 'Emma' },
    dry_run: true,
  });
  await ask(library, 'PATCH /v1/books/b1');
  t.same(lastMessage(library, UpdateBookRequestSchema), { book: { id: 'b1' } }, 'without a body');
  t.equal(
    (await askJson(library, 'PUT /v1/books/b1/tags', ['x', 'y'])).body,
    '{"id":"b1","title":"","tags":["x","y"],"copies":0}',
  );
  t.match((await askJson(library, 'POST /v1/books/b1/lend', { to: 'Ann' })).body, /lent to Ann/);
  t.match(
    (await ask(library, 'POST /v1/books/b1/lend')).body,
    /lent to "/,
    'an empty body is an empty object',
  );
  const file = await ask(library, 'PUT /v1/files/a/b%2Fc', {
    headers: { 'content-type': 'x/y' },
    body: '\0raw',
  });
  t.equal(file.body, '\0raw');
  t.same(lastMessage(library, FileRequestSchema), {
    path: 'a/b%2Fc',
    content: { content_type: 'x/y', data: 'AHJhdw==' },
  });
  const upload = await ask(library, 'POST /v1/upload', {
    headers: { 'content-type': 'image/png' },
    body: 'png',
  });
  t.match(upload, {
    status: 200,
    body: 'png',
    headers: { 'content-type': 'image/png', 'content-length': '3' },
  });
});

t.test('an answer is the whole message, one field of it, or bytes', async (t) => {
  const library = await startLibrary(t);
  t.equal((await ask(library, 'GET /v1/titles?limit=2')).body, '["Emma","Emma"]');
  t.equal((await ask(library, 'GET /v1/titles')).body, '[]');
  t.match(await ask(library, 'GET /v1/files/a/b'), { body: 'a/b', headers: { 'content-type': 'text/x' } });
  t.match(await ask(library, 'GET /v1/files/none'), {
    body: '',
    headers: { 'content-type': 'application/octet-stream' },
  });
  const file = await ask(library, 'GET /v1/books/b1/book.txt');
  t.match(file, {
    body: 'b1 as book.txt',
    headers: { 'content-type': 'text/plain', 'content-disposition': 'attachment; filename="book.txt"' },
  });
  t.equal(
    (
      await ask(library, 'GET /v1/books/b1/book.txt', {
        headers: { 'if-none-match': String(file.headers.etag) },
      })
    ).status,
    304,
  );
});

t.test('over HTTP/2 the same requests have the same answers', async (t) => {
  const { handle } = await openLibrary({
    maxBodyBytes: 1000,
    onInternalError: (error) => t.fail(String(error)),
  });
  const requests = createRequests({
    newRequestId: () => 'req_1',
    monotonicMs: () => performance.now(),
    observe: () => {},
    onEnd: () => {},
  });
  const { server } = createListener({
    limits: DEFAULT_LIMITS,
    tls: undefined,
    onConnection: () => {},
    onRequest: (req, res) => handle(requests.begin(req, res)),
    onClientError: (error) => t.fail(String(error)),
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const send = (method: string, path: string, body?: string, isEndless = false) =>
    new Promise<[status: unknown, body: string]>((resolve, reject) => {
      const stream = client.request(
        { ':method': method, ':path': path, 'content-type': 'application/json' },
        { endStream: body === undefined },
      );
      let status: unknown;
      let text = '';
      stream.on('response', (headers) => {
        status = headers[':status'];
      });
      stream.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      stream.on('error', reject).on('close', () => resolve([status, text]));
      if (isEndless) stream.write(body);
      else if (body !== undefined) stream.end(body);
    });
  t.same(await send('GET', '/v1/titles?limit=1'), [200, '["Emma"]']);
  t.equal((await send('HEAD', '/v1/titles'))[0], 200);
  t.match((await send('POST', '/v1/books/b1/lend', '{"to":"Ann"}'))[1], 'lent to Ann');
  t.equal((await send('DELETE', '/v1/books/b1'))[0], 204);
  t.equal((await send('GET', '/v1/books/b1', '{}'))[0], 400, 'a body where none is wanted');
  t.equal((await send('POST', '/v1/echo', 'x'.repeat(1001)))[0], 413);
  t.equal((await send('POST', '/v1/echo', 'x'.repeat(5000), true))[0], 413, 'a body that does not end');
  t.equal((await send('POST', '/v1/nothing', 'x', true))[0], 404);
  client.close();
  await new Promise((resolve) => server.close(resolve));
});
