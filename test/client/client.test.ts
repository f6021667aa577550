import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Code, type HandlerContext } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import {
  AttestationService,
  SubmissionStatus,
  ValidationMode,
} from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import { AttestationError, type ClientOptions, createClient, verifyBundle } from '../../src/client/client.js';
import { hashArtifact } from '../../src/client/hash.js';
import { listen, serveRpc, serviceError } from '../support/servers/rpc-server.js';

const KEY = 'svc_test_key';
const SHA256 = 'a'.repeat(64);
const METADATA = { schema: 'purl', purl: 'pkg:generic/a' };
const REQUEST = { artifact: { sha256: SHA256 }, metadata: METADATA };

/** A client whose pauses are recorded and take no time; time moves on by them. */
function clientOf(baseUrl: string, options: Partial<ClientOptions> = {}) {
  const pauses: number[] = [];
  let now = Date.parse('2026-01-01T00:00:00Z');
  const client = createClient({
    baseUrl,
    apiKey: KEY,
    now: () => now,
    random: () => 0.5,
    delay: async (ms) => {
      pauses.push(ms);
      now += ms;
    },
    ...options,
  });
  return { client, pauses };
}

/** A server whose creates fail as told, in turn, and succeed from then on. */
async function failing(t: Test, ...errors: Error[]) {
  const contexts: HandlerContext[] = [];
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      createAttestation: (request, context) => {
        contexts.push(context);
        const error = errors.shift();
        if (error) throw error;
        return { id: 'sub_1', artifact: request.artifact, metadata: request.metadata };
      },
    });
  });
  const keys = () => contexts.map(({ requestHeader }) => requestHeader.get('idempotency-key'));
  return { baseUrl, contexts, keys };
}

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

t.test('what may pass is tried again with growing pauses, under one idempotency key', async (t) => {
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

t.test('each call has an idempotency key of its own, or the one it is given', async (t) => {
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

t.test('what will not pass is not tried again, and its error says all the service said', async (t) => {
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

t.test('an attempt that gets no answer ends by its timeout and is tried again', async (t) => {
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

t.test(
  'nobody listening is `connection.failed`, another server `connection.unexpected_answer`',
  async (t) => {
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
  },
);

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

t.test('an address or key that cannot be one is refused at once', async (t) => {
  for (const baseUrl of ['', 'attest.example', 'ftp://attest.example', 'javascript:alert(1)']) {
    t.throws(() => createClient({ baseUrl, apiKey: KEY }), TypeError, baseUrl);
  }
  for (const apiKey of ['', 'a b', 'a\r\nx: y', 'é', undefined as unknown as string]) {
    t.throws(() => createClient({ baseUrl: 'http://localhost', apiKey }), TypeError, apiKey);
  }
});

t.test('submitting a file sends its hash, whatever it comes as', async (t) => {
  const bytes = randomBytes(3 * 1024 * 1024 + 17);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const dir = t.testdir({ artifact: bytes });
  const { baseUrl } = await failing(t);
  const { client } = clientOf(baseUrl);
  const pieces = async function* () {
    yield bytes.subarray(0, 5);
    yield bytes.subarray(5);
  };
  for (const [form, source] of [
    ['path', join(dir, 'artifact')],
    ['bytes', bytes],
    ['blob', new Blob([bytes])],
    ['node stream', Readable.from(pieces())],
    ['web stream', new Blob([bytes]).stream()],
    ['generator', pieces()],
  ] as const) {
    let hashed = 0;
    const submission = await client.attestations.submitFile(source, {
      metadata: METADATA,
      validation: ValidationMode.LENIENT,
      onBytes: (count) => {
        hashed += count;
      },
    });
    t.equal(submission.artifact?.sha256, sha256, form);
    t.equal(hashed, bytes.length, form);
    t.same(submission.metadata, METADATA);
  }
});

t.test('what cannot be read is not submitted', async (t) => {
  const { baseUrl, contexts } = await failing(t);
  const { client } = clientOf(baseUrl);
  const options = { metadata: METADATA };
  await t.rejects(client.attestations.submitFile('/nowhere/at/all', options), { code: 'ENOENT' });
  await t.rejects(client.attestations.submitFile(t.testdir(), options), { code: 'EISDIR' });
  const text = Readable.from(['text']);
  await t.rejects(client.attestations.submitFile(text, options), TypeError);
  const signal = AbortSignal.abort(new Error('enough'));
  await t.rejects(client.attestations.submitFile(Buffer.from('a'), { ...options, signal }), {
    message: 'enough',
  });
  t.equal(contexts.length, 0);
});

t.test('where there is no Node, artifacts are hashed and paths are refused', async (t) => {
  const { getBuiltinModule } = process;
  t.teardown(() => Object.assign(process, { getBuiltinModule }));
  Object.assign(process, { getBuiltinModule: undefined });
  const bytes = randomBytes(100_000);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  t.equal(await hashArtifact(new Blob([bytes])), sha256);
  t.equal(await hashArtifact(new Blob([bytes]).stream()), sha256);
  t.equal(await hashArtifact(bytes), sha256);
  await t.rejects(hashArtifact('/etc/hostname'), TypeError);
});

t.test('a stream that is not read to its end is cancelled', async (t) => {
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1)),
    cancel: () => {
      cancelled = true;
    },
  });
  const stop = new AbortController();
  const onBytes = () => stop.abort(new Error('enough'));
  await t.rejects(hashArtifact(stream, { signal: stop.signal, onBytes }), { message: 'enough' });
  t.ok(cancelled);
});

t.test("the caller's signal ends the hashing of a source that is stuck", async (t) => {
  const controller = new AbortController();
  const asked = async function* () {
    yield Buffer.from('a');
    controller.abort(new Error('enough'));
    await new Promise(() => {});
  };
  const stuck = new ReadableStream(
    { pull: () => controller.abort(new Error('enough')) },
    { highWaterMark: 0 },
  );
  for (const source of [asked(), stuck]) {
    await t.rejects(hashArtifact(source, { signal: controller.signal }), { message: 'enough' });
  }
  await t.rejects(hashArtifact(Buffer.from('a'), { signal: controller.signal }), { message: 'enough' });
});

t.test('a path that holds nothing but an empty file has the hash of nothing', async (t) => {
  const { baseUrl } = await failing(t);
  const { client } = clientOf(baseUrl);
  const file = join(t.testdir({ empty: '' }), 'empty');
  const { artifact } = await client.attestations.submitFile(file, { metadata: METADATA });
  t.equal(artifact?.sha256, createHash('sha256').digest('hex'));
});

/** A server that shows these statuses in turn, the last one for ever; an error in place of one is thrown. */
async function showing(t: Test, ...statuses: (SubmissionStatus | Error)[]) {
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      getAttestation: ({ id }) => {
        const status = statuses.length > 1 ? statuses.shift()! : statuses[0]!;
        if (status instanceof Error) throw status;
        return { id, status };
      },
    });
  });
  const told: string[] = [];
  const onRetry = ({ code }: AttestationError, delayMs: number) => void told.push(`${code} ${delayMs}`);
  return { ...clientOf(baseUrl, { onRetry }), requests, told };
}

t.test('waiting looks again with growing pauses until the submission is witnessed', async (t) => {
  const { QUEUED, WITNESSED } = SubmissionStatus;
  const { client, pauses } = await showing(t, QUEUED, QUEUED, QUEUED, WITNESSED);
  const seen: SubmissionStatus[] = [];
  const onProgress = ({ status }: { status: SubmissionStatus }) => void seen.push(status);
  const submission = await client.attestations.waitUntilWitnessed('sub_1', { onProgress });
  t.equal(submission.status, WITNESSED);
  t.same(seen, [QUEUED, QUEUED, QUEUED, WITNESSED]);
  t.same(pauses, [250, 375, 562.5]);
});

t.test('waiting outlasts an outage and honours its Retry-After', async (t) => {
  const outage = serviceError('service.unavailable', Code.Unavailable, { 'retry-after': '20' });
  const { client, pauses, told } = await showing(t, outage, SubmissionStatus.WITNESSED);
  await client.attestations.waitUntilWitnessed('sub_1');
  t.same(pauses, [20_000]);
  t.same(told, ['service.unavailable 20000']);
});

t.test('no look lasts longer than what is left of the wait', async (t) => {
  const { client, requests } = await showing(t, SubmissionStatus.QUEUED);
  const waiting = client.attestations.waitUntilWitnessed('sub_1', { timeoutMs: 1_000 });
  await t.rejects(waiting, { code: 'wait.timeout' });
  t.same(
    requests.map(({ headers }) => headers['connect-timeout-ms']),
    ['1000', '750', '375'],
  );
});

t.test('waiting ends when there is nothing to wait for, and says why', async (t) => {
  const { QUEUED, PARTIAL, FAILED } = SubmissionStatus;
  for (const [status, code] of [
    [PARTIAL, 'wait.partial'],
    [FAILED, 'wait.failed'],
    [QUEUED, 'wait.timeout'],
    [serviceError('submission.not_found', Code.NotFound), 'submission.not_found'],
    [serviceError('service.unavailable'), 'wait.timeout'],
  ] as const) {
    const { client, pauses } = await showing(t, status);
    await t.rejects(client.attestations.waitUntilWitnessed('sub_1', { timeoutMs: 30_000 }), { code }, code);
    t.ok(pauses.reduce((sum, ms) => sum + ms, 0) <= 30_000, 'not beyond its timeout');
  }
  const signal = AbortSignal.abort(new Error('enough'));
  const { client } = await showing(t, QUEUED);
  await t.rejects(client.attestations.waitUntilWitnessed('sub_1', { signal }), { message: 'enough' });
});

t.test('the library verifies bundles itself', async (t) => {
  const { verdict } = await verifyBundle('{}', { trustRoots: {}, now: new Date() });
  t.equal(verdict, 'not_verified');
});
