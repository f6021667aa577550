/** The client library against the service itself, over a network that fails. */
import { createHash, randomBytes } from 'node:crypto';
import { Code, ConnectError } from '@connectrpc/connect';
import t from 'tap';
import {
  AttestationError,
  type ClientOptions,
  createClient,
  ErrorCode,
  EventType,
  SubmissionStatus,
  timestampDate,
  timestampFromDate,
  verifyBundle,
  verifyWebhook,
} from '../../src/client/client.js';
import { startApp } from '../support/app.js';
import { startProxy } from '../support/breaking/proxy.js';
import { newKey } from '../support/calling/test-keys.js';
import { withinOneHour } from '../support/fixed-clock.js';
import { until } from '../support/until.js';
import { startReceiver } from '../support/webhooks/receiver.js';

const app = await startApp(t, { isProxied: true });
const owner = await newKey(app);
const METADATA = { schema: 'purl', purl: 'pkg:generic/a' };

/** A client of the service, with pauses that take no time and do `between` instead. */
function clientOf(options: Partial<ClientOptions> = {}, between: () => void = () => {}) {
  const pauses: number[] = [];
  const delay = async (ms: number) => {
    pauses.push(ms);
    between();
  };
  const client = createClient({
    baseUrl: app.baseUrl,
    apiKey: owner.key,
    random: () => 0.5,
    delay,
    ...options,
  });
  return { client, pauses };
}

function request() {
  return { artifact: { sha256: randomBytes(32).toString('hex') }, metadata: METADATA };
}

async function trustRoots(): Promise<unknown> {
  return (await fetch(`${app.verifyUrl}/trust_roots.json`)).json();
}

t.test('a file is submitted, waited for and verified', async (t) => {
  const drained: Promise<void>[] = [];
  const { client } = clientOf({}, () => void drained.push(app.drain()));
  const artifact = randomBytes(100_000);
  const submitted = await client.attestations.submitFile(artifact, { metadata: METADATA });
  t.match(submitted, { status: SubmissionStatus.QUEUED, warnings: [] });
  t.equal(submitted.artifact?.sha256, createHash('sha256').update(artifact).digest('hex'));
  t.type(submitted.logIndex, 'bigint');
  const witnessed = await client.attestations.waitUntilWitnessed(submitted.id);
  const bundle = await client.attestations.getBundle(submitted.id);
  t.same(witnessed.bundle, bundle);
  await Promise.all(drained);
  const options = { artifact, trustRoots: await trustRoots(), now: new Date() };
  for (const form of [
    bundle,
    (await client.attestations.downloadBundle({ id: submitted.id, format: 'bundle.json' })).data,
  ]) {
    const { verdict, summary } = await verifyBundle(form, options);
    t.equal(verdict, 'verified', summary);
  }
});

t.test('a listing is its first page when awaited, and everything when iterated', async (t) => {
  const { key } = await newKey(app);
  const { client } = clientOf({ apiKey: key });
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await client.attestations.create(request())).id);
  const page = await client.attestations.list({ limit: 2 });
  t.same(
    page.data.map(({ id }) => id),
    made.slice(0, 2),
  );
  t.match(page.nextCursor, /^cur_/);
  const listing = client.attestations.list({ limit: 2 });
  for (const round of ['once', 'and again']) {
    const seen: string[] = [];
    for await (const { id } of listing) seen.push(id);
    t.same(seen, made, round);
  }
  const some: string[] = [];
  for await (const { id } of client.attestations.list({ limit: 1 })) {
    some.push(id);
    if (some.length === 3) break;
  }
  t.same(some, made.slice(0, 3));
  const { submittedAt } = await client.attestations.get(made[0]!);
  const later = timestampFromDate(new Date(timestampDate(submittedAt!).getTime() + 1));
  t.same((await client.attestations.list({ submittedAfter: later })).data, []);
  t.equal((await client.attestations.list({ submittedBefore: later })).data.length, 5);
  const status = SubmissionStatus.FAILED;
  for await (const { id } of client.attestations.list({ status })) t.fail(`${id} has not failed`);
  const stop = new AbortController();
  const aborted = async () => {
    for await (const _ of client.attestations.list({ limit: 1 }, { signal: stop.signal }))
      stop.abort(new Error('enough'));
  };
  await t.rejects(aborted(), { message: 'enough' });
  await t.rejects(client.attestations.list({ cursor: 'cur_x' }), { code: 'cursor.invalid' });
});

t.test('submissions of a file are listed by its hash', async (t) => {
  const { key } = await newKey(app);
  const { client } = clientOf({ apiKey: key });
  const file = randomBytes(1_000);
  const metadata = { schema: 'purl', purl: 'pkg:npm/left-pad@1.3.0' };
  const made: string[] = [];
  for (let i = 0; i < 3; i++) made.unshift((await client.attestations.submitFile(file, { metadata })).id);
  await client.attestations.submitFile(randomBytes(1_000), { metadata });
  let hashed = 0;
  const onBytes = (bytes: number) => {
    hashed += bytes;
  };
  const found: string[] = [];
  for await (const { id } of client.attestations.listByFile(file, { limit: 2, onBytes })) found.push(id);
  t.same(found, made);
  t.equal(hashed, file.length);
  for await (const { id } of client.attestations.listByFile(file, { schema: 'none' })) t.fail(id);
});

t.test('a create whose response is lost is retried and stored once', async (t) => {
  const { port, hostname } = new URL(app.baseUrl);
  const proxy = await startProxy({ host: hostname, port: Number(port) });
  t.teardown(proxy.close);
  const { key } = await newKey(app);
  const pauses: number[] = [];
  const { client } = clientOf({
    baseUrl: `http://127.0.0.1:${proxy.port}`,
    apiKey: key,
    delay: async (ms) => void pauses.push(ms),
    fetch: async (...args) => {
      const answer = await fetch(...args);
      if (pauses.length > 0) return answer;
      // The service has answered; of its answer nothing arrives.
      proxy.cut();
      await answer.body?.cancel();
      throw new TypeError('fetch failed', { cause: new Error('the connection is gone') });
    },
  });
  const created = await client.attestations.create(request());
  t.equal(pauses.length, 1);
  const { data } = await client.attestations.list();
  t.same(
    data.map(({ id }) => id),
    [created.id],
  );
});

t.test('rejected and broken connections are retried', async (t) => {
  const { port, hostname } = new URL(app.baseUrl);
  const proxy = await startProxy({ host: hostname, port: Number(port) });
  t.teardown(proxy.close);
  const { client, pauses } = clientOf({ baseUrl: `http://127.0.0.1:${proxy.port}` }, () => {
    if (pauses.length === 2) proxy.setOpen(true);
  });
  proxy.setOpen(false);
  t.match(await client.attestations.create(request()), { status: SubmissionStatus.QUEUED });
  t.equal(pauses.length, 2);
  proxy.cut();
  t.equal((await client.service.getHealth()).status, 'ok', 'a connection that broke while it was idle');
  await proxy.close();
  await t.rejects(client.service.getHealth(), { code: 'connection.failed', requestId: undefined });
});

t.test('an exhausted rate limit is reported with details, and the client waits', async (t) => {
  const error = await withinOneHour(async () => {
    const { key } = await newKey(app, { limits: { perSecond: 1_000, perHour: 1 } });
    const { client } = clientOf({ apiKey: key });
    await client.attestations.create(request());
    return client.attestations.create(request()).catch((error: unknown) => error);
  });
  t.match(error, {
    name: 'AttestationError',
    code: 'rate_limit.exceeded',
    errorCode: ErrorCode.RATE_LIMIT_EXCEEDED,
    details: { bucket: 'submissions', limit: 1 },
    requestId: /^req_/,
    retryable: true,
    retryAfterMs: Number,
  });
});

t.test('a rejection by the service is one AttestationError with all its details', async (t) => {
  const { client, pauses } = clientOf();
  const refused = client.attestations.create({ ...request(), metadata: { schema: 'purl', purl: 'no purl' } });
  const error = await refused.catch((error: unknown) => error);
  if (!(error instanceof AttestationError)) throw error;
  t.match(error, {
    code: 'submission.invalid_metadata',
    errorCode: ErrorCode.SUBMISSION_INVALID_METADATA,
    details: { schema: 'purl', errors: [{ path: '/purl' }] },
    requestId: /^req_/,
    retryable: false,
  });
  t.ok(error.cause instanceof ConnectError && error.cause.code === Code.InvalidArgument);
  await t.rejects(client.attestations.get('sub_x'), { code: 'submission.not_found' });
  await t.rejects(clientOf({ apiKey: 'svc_live_x' }).client.service.getMe(), { code: 'auth.invalid_key' });
  t.same(pauses, []);
});

t.test('subscriptions are created, listed and deleted, and their deliveries verified', async (t) => {
  const { key } = await newKey(app);
  const { client } = clientOf({ apiKey: key });
  const receiver = await startReceiver(t);
  const { webhooks } = client;
  const webhook = await webhooks.create({ url: receiver.url, events: [EventType.ATTESTATION_WITNESSED] });
  receiver.trust(webhook.secret ?? '');
  const delivery = await webhooks.test(webhook.id);
  await app.drain();
  await until('the delivery', () => receiver.received.length > 0);
  const [{ body, headers } = { body: '', headers: {} }] = receiver.received;
  const event = verifyWebhook(body, headers, webhook.secret ?? '');
  t.equal(event.id, delivery.event?.id);
  if (event.type !== EventType.WEBHOOK_TEST) throw new Error('is another type');
  t.equal(event.data.webhookId, webhook.id);
  for await (const { id } of webhooks.listDeliveries(webhook.id)) t.equal(id, delivery.id);
  t.equal((await webhooks.getDelivery({ id: webhook.id, deliveryId: delivery.id })).id, delivery.id);
  t.not((await webhooks.rotateSecret(webhook.id)).secret, webhook.secret);
  await webhooks.delete(webhook.id);
  await t.rejects(webhooks.get(webhook.id), { code: 'webhook.not_found' });
});

t.test('a service without its database is retried after its Retry-After', async (t) => {
  const { client, pauses } = clientOf({}, () => app.databaseProxy?.setOpen(true));
  app.databaseProxy?.setOpen(false);
  t.same((await client.webhooks.list()).data, []);
  t.ok(pauses.length > 0);
  t.ok(
    pauses.every((ms) => ms >= 1_000),
    'Retry-After and a pause',
  );
});
