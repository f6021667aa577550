import { once } from 'node:events';
import { createServer } from 'node:http';
import { Code, type HandlerContext } from '@connectrpc/connect';
import t from 'tap';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import { AttestationError, type ClientOptions, createClient, verifyBundle } from '../../src/client/client.js';
import { listen, serveRpc, serviceError } from '../support/servers/rpc-server.js';
import { clientOf, failing, KEY, REQUEST } from './clients.js';

t.test('every call reaches its method with the API key', async (t) => {
  const seen: string[] = [];
  const noted = <T>({ method, requestHeader }: HandlerContext, answer: T): T => {
    seen.push(`${method.name} ${requestHeader.get('authorization')}`);
    return answer;
  };
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      createAttestation: (_, context) => noted(context, { id: 'sub_1' }),
      getAttestation: ({ id }, context) => noted(context, { id }),
      listAttestations: ({ limit }, context) => noted(context, { nextCursor: `${limit}` }),
      getBundle: (_, context) => noted(context, { mediaType: 'm' }),
      downloadBundle: ({ format }, context) => noted(context, { data: new TextEncoder().encode(format) }),
    });
    service(BatchService, {
      getBatch: ({ id }, context) => noted(context, { id }),
      listBatches: (_, context) => noted(context, { nextCursor: 'c' }),
    });
    service(InfoService, {
      getTrustRoots: (_, context) => noted(context, {}),
      getHealth: (_, context) => noted(context, { status: 'ok' }),
      getMe: (_, context) => noted(context, { scopes: ['s'] }),
    });
  });
  const { attestations, batches, service } = clientOf(`${baseUrl}/`).client;
  t.equal((await attestations.create(REQUEST)).id, 'sub_1');
  t.equal((await attestations.get('sub_2')).id, 'sub_2');
  t.equal((await attestations.list({ limit: 7 })).nextCursor, '7');
  t.equal((await attestations.getBundle('sub_1')).mediaType, 'm');
  const file = await attestations.downloadBundle({ id: 'sub_1', format: 'bundle.tlog-proof' });
  t.equal(new TextDecoder().decode(file.data), 'bundle.tlog-proof');
  t.equal((await batches.get('btc_1')).id, 'btc_1');
  t.equal((await batches.list()).nextCursor, 'c');
  t.same((await service.getTrustRoots()).policies, []);
  t.equal((await service.getHealth()).status, 'ok');
  t.same((await service.getMe()).scopes, ['s']);
  t.same(
    seen,
    [
      'CreateAttestation',
      'GetAttestation',
      'ListAttestations',
      'GetBundle',
      'DownloadBundle',
      'GetBatch',
      'ListBatches',
      'GetTrustRoots',
      'GetHealth',
      'GetMe',
    ].map((method) => `${method} Bearer ${KEY}`),
  );
});

t.test('transient errors are retried with growing delays under one idempotency key', async (t) => {
  const { baseUrl, keys } = await failing(
    t,
    serviceError('service.unavailable'),
    serviceError('idempotency.in_progress', Code.Aborted),
    serviceError('service.deadline_exceeded', Code.DeadlineExceeded),
  );
  const { client, pauses } = clientOf(baseUrl);
  t.equal((await client.attestations.create(REQUEST)).id, 'sub_1');
  t.same(pauses, [250, 500, 1000]);
  const [key] = keys();
  t.match(key, /^[0-9a-f-]{36}$/);
  t.same(keys(), [key, key, key, key]);
});

t.test("each call has an idempotency key of its own, or the caller's", async (t) => {
  const { baseUrl, keys } = await failing(t);
  const { client } = clientOf(baseUrl);
  await client.attestations.create(REQUEST);
  await client.attestations.create(REQUEST);
  await client.attestations.create(REQUEST, { idempotencyKey: 'mine' });
  t.equal(new Set(keys()).size, 3);
  t.equal(keys()[2], 'mine');
});

t.test('a call that only reads carries no idempotency key', async (t) => {
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(InfoService, { getMe: () => ({}) });
  });
  await clientOf(baseUrl).client.service.getMe();
  t.notOk('idempotency-key' in requests[0]!.headers);
});

t.test('Retry-After is waited for, as seconds or as a date, unless it is too far off', async (t) => {
  const date = 'Thu, 01 Jan 2026 00:00:12 GMT';
  const { baseUrl } = await failing(
    t,
    serviceError('rate_limit.exceeded', Code.ResourceExhausted, { 'retry-after': '7' }),
    serviceError('rate_limit.exceeded', Code.ResourceExhausted, { 'retry-after': date }),
    serviceError('rate_limit.exceeded', Code.ResourceExhausted, { 'retry-after': 'soon' }),
    serviceError('rate_limit.exceeded', Code.ResourceExhausted, { 'retry-after': '3600' }),
  );
  const { client, pauses } = clientOf(baseUrl);
  await t.rejects(client.attestations.create(REQUEST), {
    code: 'rate_limit.exceeded',
    retryable: true,
    retryAfterMs: 3_600_000,
  });
  const jitter = [250, 500, 1000] as const;
  t.same(pauses, [7_000 + jitter[0], 12_000 - 7_250 + jitter[1], jitter[2]]);
});

t.test("permanent errors are not retried and contain the service's whole error", async (t) => {
  for (const [code, connectCode] of [
    ['submission.invalid_metadata', Code.InvalidArgument],
    ['auth.invalid_key', Code.Unauthenticated],
    ['request.too_large', Code.ResourceExhausted],
    ['service.internal', Code.Internal],
    ['idempotency.key_reused', Code.FailedPrecondition],
  ] as const) {
    const { baseUrl, contexts } = await failing(t, serviceError(code, connectCode));
    const error = await clientOf(baseUrl)
      .client.attestations.create(REQUEST)
      .catch((error: unknown) => error);
    t.type(error, AttestationError);
    t.match(error, {
      code,
      message: `because of ${code}`,
      details: { reason: 'test' },
      requestId: 'req_1',
      retryable: false,
      retryAfterMs: undefined,
    });
    t.equal(contexts.length, 1, code);
  }
});

t.test('attempts end after maxRetries', async (t) => {
  const errors = Array.from({ length: 9 }, () => serviceError('service.unavailable'));
  const { baseUrl, contexts } = await failing(t, ...errors);
  const told: string[] = [];
  const onRetry: ClientOptions['onRetry'] = ({ code }, delayMs) => told.push(`${code} ${delayMs}`);
  await t.rejects(clientOf(baseUrl, { maxRetries: 2, onRetry }).client.attestations.create(REQUEST), {
    code: 'service.unavailable',
  });
  t.equal(contexts.length, 3);
  t.same(told, ['service.unavailable 250', 'service.unavailable 500'], 'of those that are tried again');
  await t.rejects(clientOf(baseUrl, { maxRetries: 0 }).client.attestations.create(REQUEST));
  t.equal(contexts.length, 4);
});

t.test('an attempt that gets no answer ends by its timeout and is retried', async (t) => {
  let hung = 0;
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(InfoService, {
      getHealth: async (_, { signal }) => {
        if (hung++ === 0) await once(signal, 'abort');
        return { status: 'ok' };
      },
    });
  });
  const { client } = clientOf(baseUrl, { timeoutMs: 200 });
  t.equal((await client.service.getHealth()).status, 'ok');
  t.equal(requests[0]!.headers['connect-timeout-ms'], '200');
});

t.test('a closed port is `connection.failed`, another server `connection.unexpected_answer`', async (t) => {
  const gone = createServer();
  const baseUrl = await listen(t, gone);
  gone.close();
  const { client, pauses } = clientOf(baseUrl);
  await t.rejects(client.service.getHealth(), { code: 'connection.failed', message: /ECONNREFUSED/ });
  t.equal(pauses.length, 4, 'after four retries');
  for (const [status, type, body] of [
    [200, 'text/html', '<html>'],
    [404, 'text/html', '<html>'],
    [404, 'application/json', '{}'],
    [500, 'application/json', '{"code":7}'],
    [200, 'application/proto', '\xff\xff'],
  ] as const) {
    const other = createServer((_, response) => {
      response.writeHead(status, { 'content-type': type }).end(body, 'latin1');
    });
    const { client, pauses } = clientOf(await listen(t, other));
    await t.rejects(
      client.service.getHealth(),
      { code: 'connection.unexpected_answer' },
      `${status} ${type}`,
    );
    t.same(pauses, [], 'not tried again');
  }
  const proxy = createServer((_, response) => void response.writeHead(502).end('bad gateway'));
  await t.rejects(clientOf(await listen(t, proxy)).client.service.getHealth(), {
    code: 'service.unavailable',
    retryable: true,
  });
});

t.test('a redirect is not followed: the key goes to the service alone', async (t) => {
  let reached = 0;
  const target = createServer((_, response) => void response.end(String(reached++)));
  const to = await listen(t, target);
  const from = await listen(
    t,
    createServer((_, response) => void response.writeHead(307, { location: to }).end()),
  );
  await t.rejects(clientOf(from).client.service.getHealth(), { code: 'connection.failed' });
  t.equal(reached, 0);
});

t.test("the caller's signal ends a call, its pause or its wait with the signal's reason", async (t) => {
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(InfoService, {
      getHealth: async (_, { signal }) => {
        await once(signal, 'abort');
        return {};
      },
    });
    service(AttestationService, {
      createAttestation: () => Promise.reject(serviceError('service.unavailable')),
    });
  });
  const reason = new Error('enough');
  const aborted = AbortSignal.abort(reason);
  const { client } = clientOf(baseUrl);
  await t.rejects(client.service.getHealth({}, { signal: aborted }), reason);
  const duringCall = new AbortController();
  const call = client.service.getHealth({}, { signal: duringCall.signal });
  duringCall.abort(reason);
  await t.rejects(call, reason);
  const duringPause = new AbortController();
  const random = () => {
    duringPause.abort(reason);
    return 1;
  };
  const real = createClient({ baseUrl, apiKey: KEY, random });
  await t.rejects(real.attestations.create(REQUEST, { signal: duringPause.signal }), reason);
});

t.test('an invalid address or key is rejected at once', async (t) => {
  for (const baseUrl of ['', 'attest.example', 'ftp://attest.example', 'javascript:alert(1)']) {
    t.throws(() => createClient({ baseUrl, apiKey: KEY }), TypeError, baseUrl);
  }
  for (const apiKey of ['', 'a b', 'a\r\nx: y', 'é', undefined as unknown as string]) {
    t.throws(() => createClient({ baseUrl: 'http://localhost', apiKey }), TypeError, apiKey);
  }
});

t.test('the library verifies bundles itself', async (t) => {
  const { verdict } = await verifyBundle('{}', { trustRoots: {}, now: new Date() });
  t.equal(verdict, 'not_verified');
});
