import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { EventType, WebhookService, WebhookStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { listAuditEntries } from '../../../../src/server/admin/store/audit.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { auditOf } from '../../rpc/auditing.js';
import { idsOfPages } from '../../rpc/paging.js';
import { NOTHING } from '../../rpc/samples.js';
import { refusal, SECRET, type Subscription, subscribe, URL } from './subscribing.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { createWebhook, getWebhook, listWebhooks, updateWebhook, deleteWebhook, rotateWebhookSecret } =
  WebhookService.method;
const EVENTS = [EventType.ATTESTATION_WITNESSED, EventType.ATTESTATION_FAILED];

t.test('a subscription has its settings, and its secret in the first response only', async (t) => {
  const owner = await newKey(app);
  for (const { name, call } of surfaces) {
    const { response, code } = await call(createWebhook, { url: URL, events: EVENTS }, owner.key);
    t.equal(code, 'ok', name);
    const { id, createdAt, secret, ...rest } = response as Subscription;
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
    const { status, code, details } = await refusal(app, owner, '/v1/webhooks', body);
    t.match(
      { status, code, details },
      { status: 400, code: 'request.invalid', details: { errors: [{ path }] } },
      JSON.stringify(body).slice(0, 80),
    );
  }
  const { id } = await subscribe(app, owner);
  for (const [body, path] of [
    [{ status: 'deleted' }, '/status'],
    [{ events: ['webhook.test'] }, '/events/0'],
    [{ secret: 'whsec_x' }, '/secret'],
  ] as [JsonObject, string][]) {
    t.match(await refusal(app, owner, `/v1/webhooks/${id}`, body, 'PATCH'), {
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
    const { id } = await subscribe(app, owner);
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

t.test('a deleted subscription is not found by any RPC, and its secrets are erased', async (t) => {
  const owner = await newKey(app);
  for (const { name, call } of surfaces) {
    const { id } = await subscribe(app, owner);
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

t.test('every other change is made once for its key', async (t) => {
  const owner = await newKey(app);
  const { id } = await subscribe(app, owner);
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
  const { id } = await subscribe(app, owner);
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
  await Promise.all(Array.from({ length: 50 }, () => subscribe(app, owner)));
  const [a, b] = await Promise.all(
    [1, 2].map(() => refusal(app, owner, '/v1/webhooks', { url: URL, events: ['attestation.failed'] })),
  );
  t.match(
    [a, b],
    [
      { status: 409, code: 'webhook.limit_reached' },
      { status: 409, code: 'webhook.limit_reached' },
    ],
  );
  await subscribe(app, other);
  const { json } = await app.rest('/v1/webhooks?limit=1', { apiKey: owner.key });
  const [{ id } = { id: '' }] = json.data as { id: string }[];
  await app.rest(`/v1/webhooks/${id}`, { apiKey: owner.key, method: 'DELETE' });
  t.ok(await subscribe(app, owner), 'one that is deleted makes room');
});

t.test('lists are newest first and page without gap or repetition', async (t) => {
  const owner = await newKey(app);
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await subscribe(app, owner)).id);
  for (const { name, call } of surfaces) {
    const seen = await idsOfPages((cursor) => call(listWebhooks, { limit: 2, cursor }, owner.key));
    t.same(seen, made, name);
  }
  const foreign = await app.rest('/v1/webhooks?limit=2', { apiKey: owner.key });
  const stranger = await newKey(app);
  const { status, json } = await app.rest(`/v1/webhooks?cursor=${foreign.json.next_cursor}`, {
    apiKey: stranger.key,
  });
  t.match({ status, ...json }, { status: 400, error: { code: 'cursor.invalid' } });
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder, true);
});
