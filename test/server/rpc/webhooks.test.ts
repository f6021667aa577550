import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { EventType, WebhookService, WebhookStatus } from '../../../gen/attestation/v1/webhooks_pb.js';
import { listAuditEntries } from '../../../src/server/store/projects/audit.js';
import { startApp } from '../../support/app.js';
import { newKey, type TestKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { startReceiver } from '../../support/webhooks/receiver.js';
import { auditOf } from './auditing.js';
import { NOTHING } from './samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { createWebhook, getWebhook, listWebhooks, updateWebhook, deleteWebhook, rotateWebhookSecret } =
  WebhookService.method;
const URL = 'http://127.0.0.1:9/hook';
const EVENTS = [EventType.ATTESTATION_WITNESSED, EventType.ATTESTATION_FAILED];
const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

type Json = JsonObject & { id: string; secret?: string };

/** Creates one by REST; what is in `more` replaces or adds members. */
async function make(
  { key }: TestKey,
  more: JsonObject = {},
  headers: Record<string, string> = {},
): Promise<Json> {
  const body = { url: URL, events: ['attestation.witnessed'], ...more };
  const { status, json } = await app.rest('/v1/webhooks', { apiKey: key, body, headers });
  if (status !== 201) throw new Error(JSON.stringify(json));
  app.recorder.secrets.add(String(json.secret));
  return json as Json;
}

async function refusal({ key }: TestKey, path: string, body: JsonObject, method = 'POST') {
  const { status, json } = await app.rest(path, { apiKey: key, body, method });
  const { code, message, details } = json.error as JsonObject;
  return { status, code, message, details };
}

t.test('a subscription has its settings, and its secret in the first response only', async (t) => {
  const owner = await newKey(app);
  for (const { name, call } of surfaces) {
    const { response, code } = await call(createWebhook, { url: URL, events: EVENTS }, owner.key);
    t.equal(code, 'ok', name);
    const { id, createdAt, secret, ...rest } = response as Json;
    t.match(id, /^whk_[0-9A-HJKMNP-TV-Z]{26}$/);
    t.match(createdAt, /^\d{4}-\d\d-\d\dT/);
    t.match(secret, SECRET);
    app.recorder.secrets.add(String(secret));
    t.same(rest, {
      url: URL,
      events: ['EVENT_TYPE_ATTESTATION_WITNESSED', 'EVENT_TYPE_ATTESTATION_FAILED'],
      environment: 'ENVIRONMENT_LIVE',
      status: 'WEBHOOK_STATUS_ACTIVE',
    });
    for (const again of [
      await call(getWebhook, { id }, owner.key),
      await call(updateWebhook, { id, status: WebhookStatus.ACTIVE }, owner.key),
    ]) {
      t.same(again.response, { id, createdAt, ...rest }, `${name} shows no secret later`);
    }
  }
  const list = await app.rest('/v1/webhooks', { apiKey: owner.key });
  t.notMatch(list.body.toString(), /whsec_/);
  t.match(list.json.data, [{ events: ['attestation.witnessed', 'attestation.failed'], status: 'active' }]);
});

t.test('a caller may bring a secret of 24 to 64 bytes', async (t) => {
  const owner = await newKey(app);
  for (const size of [24, 25, 32, 63, 64]) {
    const secret = `whsec_${randomBytes(size).toString('base64')}`;
    t.equal((await make(owner, { secret })).secret, secret, `${size} bytes`);
  }
  const of = (size: number) => randomBytes(size).toString('base64');
  for (const secret of [
    '',
    'whsec_',
    of(32),
    `whsec_${of(23)}`,
    `whsec_${of(65)}`,
    `whsec_${of(32).slice(0, -1)}`,
    `whsec_${'A'.repeat(42)}B=`,
    `whsec_${of(32)}\n`,
    `whsec_${Buffer.alloc(32, 0xff).toString('base64url')}`,
    `WHSEC_${of(32)}`,
  ]) {
    const { status, code, details } = await refusal(owner, '/v1/webhooks', {
      url: URL,
      events: ['attestation.witnessed'],
      secret,
    });
    t.match(
      { status, code, details },
      {
        status: 400,
        code: 'request.invalid',
        details: { errors: [{ path: '/secret', message: /^must be/ }] },
      },
      JSON.stringify(secret),
    );
  }
});

t.test('secrets are encrypted where they are stored, each for its own subscription', async (t) => {
  const owner = await newKey(app);
  const { id, secret = '' } = await make(owner);
  const [row] = await app.pool<{ text: string; secret: Buffer }[]>`
    SELECT w::text AS text, secret FROM webhook w WHERE id = ${id}`;
  const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64');
  t.notMatch(row?.text, secret);
  t.notOk(row?.secret.includes(bytes));
  t.notOk(row?.secret.includes(secret));
});

t.test('problems of a webhook are reported by member', async (t) => {
  const owner = await newKey(app);
  const good = { url: URL, events: ['attestation.witnessed'] };
  for (const [body, path] of [
    [{ events: good.events }, '/url'],
    [{ ...good, url: '' }, '/url'],
    [{ ...good, url: `https://example.com/${'x'.repeat(2048)}` }, '/url'],
    [{ url: URL }, '/events'],
    [{ ...good, events: [] }, '/events'],
    [{ ...good, events: ['attestation.unknown'] }, '/events/0'],
    [{ ...good, events: ['webhook.test'] }, '/events/0'],
    [{ ...good, events: ['attestation.witnessed', 'attestation.witnessed'] }, '/events'],
    [{ ...good, status: 'disabled' }, '/status'],
  ] as [JsonObject, string][]) {
    const { status, code, details } = await refusal(owner, '/v1/webhooks', body);
    t.match(
      { status, code, details },
      { status: 400, code: 'request.invalid', details: { errors: [{ path }] } },
      JSON.stringify(body).slice(0, 80),
    );
  }
  const { id } = await make(owner);
  for (const [body, path] of [
    [{ status: 'deleted' }, '/status'],
    [{ events: ['webhook.test'] }, '/events/0'],
    [{ secret: 'whsec_x' }, '/secret'],
  ] as [JsonObject, string][]) {
    t.match(await refusal(owner, `/v1/webhooks/${id}`, body, 'PATCH'), {
      status: 400,
      details: { errors: [{ path }] },
    });
  }
});

t.test('a url that may not be called is rejected, when it is saved and when it is changed', async (t) => {
  const strict = await startApp(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'false' } });
  const owner = await newKey(strict);
  const body = (url: string) => ({ url, events: ['attestation.witnessed'] });
  const ask = (path: string, method: string, url: string) =>
    strict.rest(path, { apiKey: owner.key, method, body: method === 'POST' ? body(url) : { url } });
  const good = await ask('/v1/webhooks', 'POST', 'https://93.184.216.34/hook');
  t.equal(good.status, 201);
  for (const url of [
    'http://93.184.216.34/',
    'https://127.0.0.1/',
    'https://a:b@93.184.216.34/',
    'https://10.0.0.1/',
    'x',
  ]) {
    for (const [path, method] of [
      ['/v1/webhooks', 'POST'],
      [`/v1/webhooks/${good.json.id}`, 'PATCH'],
    ] as const) {
      const { status, json } = await ask(path, method, url);
      t.match(
        { status, ...json },
        { status: 422, error: { code: 'webhook.invalid_url' } },
        `${method} ${url}`,
      );
    }
  }
  t.equal(
    (await strict.rest(`/v1/webhooks/${good.json.id}`, { apiKey: owner.key })).json.url,
    'https://93.184.216.34/hook',
  );
});

t.test('an update changes only the fields that it names', async (t) => {
  const owner = await newKey(app);
  for (const { name, call } of surfaces) {
    const { id } = await make(owner);
    const update = async (change: Record<string, unknown>) =>
      (await call(updateWebhook, { id, ...change }, owner.key)).response;
    const before = (await call(getWebhook, { id }, owner.key)).response;
    t.same(await update({}), before, name);
    t.same(await update({ url: `${URL}2` }), { ...before, url: `${URL}2` });
    const events = ['EVENT_TYPE_ATTESTATION_PARTIAL'];
    t.same(await update({ events: [EventType.ATTESTATION_PARTIAL] }), { ...before, url: `${URL}2`, events });
    const disabled = await update({ status: WebhookStatus.DISABLED });
    t.match(disabled, { status: 'WEBHOOK_STATUS_DISABLED', disabledReason: /API/, url: `${URL}2`, events });
    t.same(await update({ status: WebhookStatus.ACTIVE }), { ...before, url: `${URL}2`, events });
  }
});

t.test('a deleted subscription is gone for everything, and its secrets with it', async (t) => {
  const owner = await newKey(app);
  for (const { name, call } of surfaces) {
    const { id } = await make(owner);
    const deleted = await call(deleteWebhook, { id }, owner.key);
    t.match(deleted, { code: 'ok', response: { id, status: 'WEBHOOK_STATUS_DELETED' } }, name);
    for (const method of Object.values(WebhookService.method)) {
      if (!('id' in method.input.field)) continue;
      const input = { id, deliveryId: NOTHING.deliveryId, since: { seconds: 0n } };
      const { code, status, grpcCode } = await call(method as typeof getWebhook, input, owner.key);
      t.equal(code, 'webhook.not_found', `${method.name} by ${name}`);
      t.equal(name === 'REST' ? status : grpcCode, name === 'REST' ? 404 : 5);
    }
    const [row] = await app.pool`SELECT length(secret) AS n, previous_secret FROM webhook WHERE id = ${id}`;
    t.same(row, { n: 0, previous_secret: null });
  }
  t.same((await app.rest('/v1/webhooks', { apiKey: owner.key })).json, { data: [], next_cursor: '' });
});

t.test('a rotated secret is returned once, with the time until which the old one signs', async (t) => {
  const owner = await newKey(app);
  for (const { name, call } of surfaces) {
    const { id, secret } = await make(owner);
    const own = `whsec_${randomBytes(24).toString('base64')}`;
    for (const wanted of [undefined, own]) {
      const { response } = await call(
        rotateWebhookSecret,
        { id, ...(wanted ? { secret: wanted } : {}) },
        owner.key,
      );
      const { secret: made, previousSecretUntil } = response as Json & { previousSecretUntil: string };
      if (wanted === undefined) t.match(made, SECRET, name);
      else t.equal(made, wanted);
      t.not(made, secret);
      const hours = (Date.parse(previousSecretUntil) - Date.now()) / 3_600_000;
      t.ok(hours > 23.9 && hours <= 24, `${hours} h`);
      app.recorder.secrets.add(String(made));
    }
    t.notOk('secret' in (await call(getWebhook, { id }, owner.key)).response);
  }
});

t.test(
  'a repeated creation returns the same subscription with its secret; a reused key is rejected',
  async (t) => {
    const owner = await newKey(app);
    for (const [i, { name, call }] of surfaces.entries()) {
      const headers = { 'idempotency-key': `create-${i}` };
      const first = await call(createWebhook, { url: URL, events: EVENTS }, owner.key, headers);
      t.equal(first.headers['idempotent-replayed'], undefined);
      for (const other of surfaces) {
        const again = await other.call(createWebhook, { url: URL, events: EVENTS }, owner.key, headers);
        t.same(again.response, first.response, `${name} again by ${other.name}`);
        t.equal(again.headers['idempotent-replayed'], 'true');
        t.equal(again.status, other.name === 'REST' ? 201 : 0);
      }
      const reused = await call(createWebhook, { url: `${URL}2`, events: EVENTS }, owner.key, headers);
      t.equal(reused.code, 'idempotency.key_reused');
      const { id, secret } = first.response as Json;
      app.recorder.secrets.add(String(secret));
      await call(deleteWebhook, { id }, owner.key);
      const after = await call(createWebhook, { url: URL, events: EVENTS }, owner.key, headers);
      t.match(after.response, { id, status: 'WEBHOOK_STATUS_DELETED', secret: undefined });
    }
    t.same((await app.rest('/v1/webhooks', { apiKey: owner.key })).json.data, []);
  },
);

t.test('every other change is made once for its key', async (t) => {
  const owner = await newKey(app);
  const { id } = await make(owner);
  const again = async (path: string, method: string, body?: JsonObject) => {
    const headers = { 'idempotency-key': `${method} ${path}`.replaceAll(' ', '-') };
    const options = { apiKey: owner.key, method, body, headers };
    const first = await app.rest(path, options);
    const second = await app.rest(path, options);
    t.equal(second.status, first.status, path);
    t.equal(second.headers['idempotent-replayed'], 'true');
    return [first.json, second.json] as const;
  };
  const [one, same] = await again(`/v1/webhooks/${id}/rotate_secret`, 'POST', {});
  t.same(same, one);
  app.recorder.secrets.add(String(one.secret));
  const [test, sameTest] = await again(`/v1/webhooks/${id}/test`, 'POST', {});
  t.equal(sameTest.id, test.id);
  const tests = await app.rest(`/v1/webhooks/${id}/deliveries`, { apiKey: owner.key });
  t.equal((tests.json.data as unknown[]).length, 1);
  await again(`/v1/webhooks/${id}/deliveries/${test.id}/redeliver`, 'POST', {});
  await again(`/v1/webhooks/${id}/redeliver_failed`, 'POST', { since: '2026-01-01T00:00:00Z' });
  await again(`/v1/webhooks/${id}`, 'PATCH', { status: 'disabled' });
  const [gone, sameGone] = await again(`/v1/webhooks/${id}`, 'DELETE');
  t.same([gone.status, sameGone.status], ['deleted', 'deleted']);
});

t.test('a change that changes nothing is in no audit log, on any surface', async (t) => {
  const owner = await newKey(app);
  const own = `whsec_${randomBytes(24).toString('base64')}`;
  app.recorder.secrets.add(own);
  const { response } = await surfaces[0]!.call(
    createWebhook,
    { url: URL, events: EVENTS, secret: own },
    owner.key,
  );
  const id = String(response.id);
  const before = (await app.pool`SELECT * FROM webhook WHERE id = ${id}`)[0];
  for (const { name, call } of surfaces) {
    const asItIs = { id, url: URL, events: EVENTS, status: WebhookStatus.ACTIVE };
    for (const change of [asItIs, { id, url: URL }, { id, events: EVENTS }]) {
      t.equal((await call(updateWebhook, change, owner.key)).code, 'ok', name);
    }
    const rotated = await call(rotateWebhookSecret, { id, secret: own }, owner.key);
    t.match(rotated.response, { id, secret: own }, name);
    t.notOk('previousSecretUntil' in rotated.response, name);
  }
  t.same((await app.pool`SELECT * FROM webhook WHERE id = ${id}`)[0], before);
  const entries = await auditOf(app, id);
  t.same(
    entries.map(({ action }) => action),
    [AuditAction.WEBHOOK_CREATED],
  );
});

t.test('the audit log says who changed a subscription, and nothing secret', async (t) => {
  const owner = await newKey(app);
  const { id } = await make(owner);
  const change = (path: string, method: string, body?: JsonObject) =>
    app.rest(`/v1/webhooks/${id}${path}`, { apiKey: owner.key, method, body });
  await change('', 'PATCH', { url: `${URL}2` });
  await change('', 'PATCH', { status: 'disabled' });
  const rotated = await change('/rotate_secret', 'POST', {});
  app.recorder.secrets.add(String(rotated.json.secret));
  await change('', 'DELETE');
  await change('', 'DELETE');
  const rows = await listAuditEntries(app.pool, {
    projectId: owner.projectId,
    action: undefined,
    resourceId: id,
    after: undefined,
    before: undefined,
    belowId: undefined,
    limit: 10,
  });
  const { WEBHOOK_CREATED, WEBHOOK_CHANGED, WEBHOOK_DISABLED, WEBHOOK_SECRET_ROTATED, WEBHOOK_DELETED } =
    AuditAction;
  t.same(
    rows.map(({ action }) => action).sort((a, b) => a - b),
    [WEBHOOK_CREATED, WEBHOOK_CHANGED, WEBHOOK_SECRET_ROTATED, WEBHOOK_DISABLED, WEBHOOK_DELETED],
  );
  for (const row of rows) t.match(row, { actorId: owner.id, requestId: /^req_/ });
  t.notMatch(JSON.stringify(rows), /whsec_|127\.0\.0\.1/);
});

t.test('a project has at most fifty subscriptions in an environment', async (t) => {
  const owner = await newKey(app);
  const other = await newKey(app, { projectId: owner.projectId, environment: Environment.TEST });
  await Promise.all(Array.from({ length: 50 }, () => make(owner)));
  const [a, b] = await Promise.all(
    [1, 2].map(() => refusal(owner, '/v1/webhooks', { url: URL, events: ['attestation.failed'] })),
  );
  t.match(
    [a, b],
    [
      { status: 409, code: 'webhook.limit_reached' },
      { status: 409, code: 'webhook.limit_reached' },
    ],
  );
  await make(other);
  const { json } = await app.rest('/v1/webhooks?limit=1', { apiKey: owner.key });
  const [{ id } = { id: '' }] = json.data as { id: string }[];
  await app.rest(`/v1/webhooks/${id}`, { apiKey: owner.key, method: 'DELETE' });
  t.ok(await make(owner), 'one that is deleted makes room');
});

t.test('lists are newest first and page without gap or repetition', async (t) => {
  const owner = await newKey(app);
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await make(owner)).id);
  for (const { name, call } of surfaces) {
    const seen: string[] = [];
    let cursor = '';
    do {
      const { response } = await call(listWebhooks, { limit: 2, cursor }, owner.key);
      seen.push(...(response.data as Json[]).map(({ id }) => id));
      cursor = String(response.nextCursor ?? '');
    } while (cursor !== '');
    t.same(seen, made, name);
  }
  const foreign = await app.rest('/v1/webhooks?limit=2', { apiKey: owner.key });
  const stranger = await newKey(app);
  const { status, json } = await app.rest(`/v1/webhooks?cursor=${foreign.json.next_cursor}`, {
    apiKey: stranger.key,
  });
  t.match({ status, ...json }, { status: 400, error: { code: 'cursor.invalid' } });
});

t.test('a test is sent once, signed, also while the subscription is disabled', async (t) => {
  const owner = await newKey(app);
  const receiver = await startReceiver(t);
  const { id, secret = '' } = await make(owner, { url: receiver.url });
  receiver.trust(secret);
  for (const status of ['active', 'disabled']) {
    await app.rest(`/v1/webhooks/${id}`, { apiKey: owner.key, method: 'PATCH', body: { status } });
    const { status: code, json } = await app.rest(`/v1/webhooks/${id}/test`, { apiKey: owner.key, body: {} });
    t.equal(code, 201);
    t.match(json, {
      id: /^dlv_/,
      webhook_id: id,
      status: 'pending',
      attempts: [],
      event: { id: /^evt_/, type: 'webhook.test', data: { webhook_id: id } },
    });
    await app.drain();
    const shown = await app.rest(`/v1/webhooks/${id}/deliveries/${json.id}`, { apiKey: owner.key });
    t.match(shown.json, {
      status: 'delivered',
      delivered_at: /T/,
      attempts: [{ number: 1, status_code: 204 }],
    });
    t.same(receiver.received.at(-1)?.event, shown.json.event);
  }
  t.equal(receiver.received.length, 2);
  await receiver.close();
  const { json } = await app.rest(`/v1/webhooks/${id}/test`, { apiKey: owner.key, body: {} });
  await app.drain();
  const failed = await app.rest(`/v1/webhooks/${id}/deliveries/${json.id}`, { apiKey: owner.key });
  t.match(
    failed.json,
    { status: 'failed', attempts: [{ number: 1, error: /./ }] },
    'a test that fails is over',
  );
  t.equal(failed.json.next_attempt_at, undefined);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder, true);
});
