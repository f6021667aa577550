import t from 'tap';
import { ErrorCode, ErrorCodeSchema } from '../../../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../../../../src/protocol/error-rules.js';
import { ApiError } from '../../../../src/server/core/errors.js';
import { createRestHandler } from '../../../../src/server/http/rest/handler.js';
import { LibraryService } from '../../../gen/library/v1/library_pb.js';
import * as refused from '../../../gen/library/v1/refused_pb.js';
import {
  ask,
  askJson,
  callHandler,
  codeOf,
  libraryHandlers,
  openLibrary,
  startLibrary,
} from './rest-library.js';

t.test(
  'a request is rejected in the order of the API, and its body is not read before it is admitted',
  async (t) => {
    let admitted = 0;
    let refusal: ApiError | undefined = new ApiError(
      ErrorCode.AUTH_INVALID_KEY,
      'no',
      {},
      { 'www-authenticate': 'Bearer' },
    );
    const library = await startLibrary(t, {
      maxBodyBytes: 100,
      holdFor: () => () => {},
      holdResponse: () => {},
      admit: async (call) => {
        admitted++;
        call.responseHeaders.set('x-ratelimit-remaining', '3');
        if (refusal !== undefined) throw refusal;
      },
    });
    const large = 'x'.repeat(101);
    const wrongType = { 'content-type': 'text/plain' };
    const statusOf = async (line: string, body: string, headers: Record<string, string> = {}) =>
      (await ask(library, line, { body, headers: { 'content-length': String(body.length), ...headers } }))
        .status;

    t.equal(await statusOf('POST /v1/nothing', large, wrongType), 404);
    t.equal(await statusOf('PUT /v1/echo', large, wrongType), 405);
    t.equal(admitted, 0, 'a path that is not there needs no key');
    t.equal(await statusOf('POST /v1/echo?x=1', large, wrongType), 401);
    const unauthorized = await askJson(library, 'POST /v1/echo', '{');
    t.match(unauthorized.headers, { 'www-authenticate': 'Bearer', 'x-ratelimit-remaining': '3' });
    t.equal(codeOf(unauthorized), 'auth.invalid_key');
    refusal = undefined;
    t.equal(await statusOf('POST /v1/echo?x=1', large, wrongType), 413);
    t.equal(await statusOf('POST /v1/echo?x=1', '{', wrongType), 415);
    t.equal(await statusOf('POST /v1/echo?x=1', '{', { 'content-type': 'application/json' }), 400);
    t.equal(await statusOf('POST /v1/echo?x=1', '{}', { 'content-type': 'application/json' }), 400);
    t.same(library.calls, []);
    t.equal(await statusOf('POST /v1/echo', '{}', { 'content-type': 'application/json' }), 200);
    t.equal(library.calls.length, 1);
  },
);

t.test('a JSON body must be UTF-8 and not compressed', async (t) => {
  const library = await startLibrary(t);
  const send = (headers: Record<string, string>) =>
    ask(library, 'POST /v1/echo', { body: '{}', headers: { 'content-length': '2', ...headers } });
  const good = [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json; charset=utf8',
    'application/json ; profile=x',
    'application/json;',
  ];
  for (const type of good) t.equal((await send({ 'content-type': type })).status, 200, type);
  const bad = [
    '',
    'text/json',
    'application/jsonx',
    'application/json+x',
    'application/problem+json',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'application/json, text/plain',
    '*/*',
    'multipart/form-data; boundary=application/json',
  ];
  for (const type of bad) {
    const reply = await send({ 'content-type': type });
    t.equal(reply.status, 415, type);
    t.equal(codeOf(reply), 'request.unsupported_media_type');
    t.equal(reply.headers.accept, 'application/json');
  }
  t.equal((await send({})).status, 415, 'no type at all');
  for (const coding of ['gzip', 'br', 'identity, gzip', 'x']) {
    const reply = await send({ 'content-type': 'application/json', 'content-encoding': coding });
    t.equal(reply.status, 415, coding);
    t.equal(reply.headers['accept-encoding'], 'identity');
  }
  t.equal((await send({ 'content-type': 'application/json', 'content-encoding': 'Identity' })).status, 200);
});

t.test('every error has its status, its envelope and its headers', async (t) => {
  let thrown: unknown;
  const library = await startLibrary(t, {
    invoke: async (call) => {
      call.responseHeaders.set('x-ratelimit-limit', '60');
      throw thrown;
    },
  });
  for (const { number } of ErrorCodeSchema.values) {
    if (number === ErrorCode.UNSPECIFIED) continue;
    thrown = new ApiError(number, 'because', { a: { b: 1 } }, { 'retry-after': '7' });
    const { code, httpStatus } = errorRules(number);
    const reply = await ask(library, 'GET /v1/books/b1');
    t.equal(reply.status, httpStatus, code);
    t.match(reply.headers, {
      'content-type': 'application/json',
      'retry-after': '7',
      'x-ratelimit-limit': '60',
    });
    const requestId = reply.headers['x-request-id'];
    t.same(JSON.parse(reply.body), {
      error: { code, message: 'because', details: { a: { b: 1 } }, request_id: requestId },
    });
  }
  t.same(library.failures, []);
  for (const failure of [new Error('select * from secrets'), 'a string', undefined, null, { code: 2 }]) {
    thrown = failure;
    const reply = await ask(library, 'GET /v1/books/b1');
    t.equal(reply.status, 500);
    t.equal(codeOf(reply), 'service.internal');
    t.notMatch(reply.body, /secrets|at |string/);
    t.equal(library.failures.pop(), failure);
  }
});

t.test('a service that cannot be served is rejected at start, naming the RPC', async (t) => {
  const make = (desc: Parameters<typeof createRestHandler>[0]['services'][number]['desc']) => () =>
    createRestHandler({
      services: [
        {
          desc,
          handlers: {
            get: libraryHandlers.getBook,
            getOne: libraryHandlers.getBook,
            getOther: libraryHandlers.getBook,
            watch: libraryHandlers.getBook,
          } as never,
        },
      ],
      admit: async () => {},
      invoke: callHandler,
      rateHeaders: () => [],
      maxBodyBytes: 1,
      holdFor: () => () => {},
      holdResponse: () => {},
      onInternalError: () => {},
    });
  t.throws(make(refused.StreamingService), /library\.v1\.StreamingService\.Watch: a streaming RPC/);
  t.throws(make(refused.BadStatusService), /BadStatusService\.Get: 302 is no status of success/);
  t.throws(make(refused.UnknownVariableService), /GetBookRequest has no field isbn/);
  t.throws(make(refused.UnknownBodyService), /GetBookRequest has no field isbn for the body/);
  t.throws(make(refused.GetWithBodyService), /GET \/v1\/books cannot have a body/);
  t.throws(make(refused.BodyIsVariableService), /id is bound by the path and by the body/);
  t.throws(make(refused.UnknownResponseBodyService), /Book has no field isbn for the answer/);
  t.throws(make(refused.NestedBindingService), /additional_bindings inside additional_bindings/);
  t.throws(make(refused.NoPatternService), /an http rule without a path/);
  t.throws(make(LibraryService), /LibraryService\.CreateBook: no handler/);
});

t.test('two RPCs with the same path and method are rejected at start', async (t) => {
  const get = libraryHandlers.getBook;
  const handlers = { get, getOne: get, getOther: get } as never;
  const clashing = openLibrary({ services: [{ desc: refused.ClashingService, handlers }] });
  await t.rejects(clashing, /Method 'GET' already declared for route '\/v1\/books\/:s2'/);
});
