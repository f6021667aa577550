import t from 'tap';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';
import { type Json, setExportScene } from './exporting.js';

const scene = await setExportScene(t);
const { app, store, make, refusal, destination } = scene;
const body = { destination: destination() };

const create = (key: string, headers: Record<string, string>) =>
  app.rest('/v1/exports', { apiKey: key, body, headers });
const idsOf = async (key: string) =>
  ((await app.rest('/v1/exports', { apiKey: key })).json.data as Json[]).map(({ id }) => id);

/** Holds the next probe until the function that it returns is called. */
function holdProbe(): { release: () => void } {
  let open = () => {};
  const until = new Promise<void>((resolve) => {
    open = resolve;
  });
  let isHeld = false;
  store.fail(() => {
    if (isHeld) return undefined;
    isHeld = true;
    return { kind: 'hold', until };
  });
  return {
    release: () => {
      store.fail(() => undefined);
      open();
    },
  };
}

t.test('a repeated creation returns the export without a probe, a changed one is rejected', async (t) => {
  const { key } = await newKey(app);
  const headers = { 'idempotency-key': 'one' };
  const first = await create(key, headers);
  t.equal(first.status, 201);
  const requests = store.requests.length;
  const again = await create(key, headers);
  t.equal(again.status, 201);
  t.equal(again.headers['idempotent-replayed'], 'true');
  t.same(again.json.id, first.json.id);
  t.equal(store.requests.length, requests, 'a replay does not probe');
  const other = { ...body, compression: 'gzip' };
  const reused = await app.rest('/v1/exports', { apiKey: key, body: other, headers });
  t.match(reused.json, { error: { code: 'idempotency.key_reused' } });
  t.equal(store.requests.length, requests, 'nor does another request');
  await app.rest(`/v1/exports/${first.json.id}`, { apiKey: key, method: 'DELETE' });
  t.match((await create(key, headers)).json, { id: first.json.id, status: 'stopped' });
  t.same(await idsOf(key), [first.json.id]);
});

t.test('two creations under one key make one export by one probe', async (t) => {
  const { key } = await newKey(app);
  const headers = { 'idempotency-key': 'two' };
  const before = scene.probed().length;
  const probe = holdProbe();
  const both = [create(key, headers), create(key, headers)];
  await until('one of them probes', () => store.requests.at(-1)?.key.endsWith('/probe') === true);
  probe.release();
  const [a, b] = await Promise.all(both);
  t.same([a?.status, b?.status], [201, 201]);
  t.equal(a?.json.id, b?.json.id);
  t.same(await idsOf(key), [a?.json.id]);
  t.equal(scene.probed().length, before + 1);
});

t.test('a creation under the key of one that is still probing returns a retry delay', async (t) => {
  const { key } = await newKey(app);
  const headers = { 'idempotency-key': 'three' };
  const probe = holdProbe();
  const slow = create(key, headers);
  const [lease] = await waitForLease();
  t.ok(lease && lease.seconds > 30 && lease.seconds <= 60, 'the key is leased for longer than a probe');
  const busy = await create(key, headers);
  t.match([busy.status, busy.json], [409, { error: { code: 'idempotency.in_progress' } }]);
  await app.pool`UPDATE idempotency_lease SET leased_until = clock_timestamp() - interval '1 second'`;
  const next = await create(key, headers);
  t.equal(next.status, 201, 'the lease of a killed process runs out');
  probe.release();
  const late = await slow;
  t.match(
    [late.status, late.json.id],
    [201, next.json.id],
    'and one that was not killed makes no second export',
  );
  t.same(await idsOf(key), [next.json.id]);
  t.same((await app.pool`SELECT FROM idempotency_lease`).length, 0);
});

async function waitForLease(): Promise<{ seconds: number }[]> {
  let rows: { seconds: number }[] = [];
  await until('the key is leased', async () => {
    rows = await app.pool<{ seconds: number }[]>`
      SELECT extract(epoch FROM leased_until - clock_timestamp())::float8 AS seconds FROM idempotency_lease`;
    return rows.length === 1;
  });
  return rows;
}

t.test('a creation whose probe failed stores nothing, and is repeated under its key', async (t) => {
  const owner = await newKey(app);
  const headers = { 'idempotency-key': 'four' };
  store.fail(() => ({ kind: 'refuse', code: 'AccessDenied' }));
  for (let i = 0; i < 2; i++) {
    const failed = await refusal(owner, body, { headers });
    t.match(failed, { status: 422, code: 'export.invalid_destination', message: /AccessDenied/ });
  }
  store.fail(() => undefined);
  t.same(await idsOf(owner.key), []);
  const made = await create(owner.key, headers);
  t.equal(made.status, 201);
  t.same(await idsOf(owner.key), [made.json.id]);
});

t.test('a test is made once for its key, and fails with the reason', async (t) => {
  const owner = await newKey(app);
  const { id } = await make(owner);
  const test = (name: string) =>
    app.rest(`/v1/exports/${id}/test`, { apiKey: owner.key, body: {}, headers: { 'idempotency-key': name } });
  t.equal((await test('a')).status, 200);
  const requests = store.requests.length;
  const again = await test('a');
  t.match([again.status, again.json.id], [200, id]);
  t.equal(store.requests.length, requests);
  store.fail(() => ({ kind: 'refuse', code: 'NoSuchBucket' }));
  t.match((await test('b')).json, { error: { code: 'export.invalid_destination', message: /NoSuchBucket/ } });
  store.fail(() => undefined);
  t.equal((await test('b')).status, 200);
  t.match((await app.rest(`/v1/exports/${id}`, { apiKey: owner.key })).json, { consecutive_failures: 0 });
  const before = (await app.rest(`/v1/exports/${id}`, { apiKey: owner.key })).json;
  await app.pool`UPDATE export SET secrets = '\\x01026b3900' || secrets WHERE id = ${id}`;
  t.match((await test('c')).json, {
    error: { code: 'export.invalid_destination', message: /cannot decrypt/ },
  });
  t.same((await app.rest(`/v1/exports/${id}`, { apiKey: owner.key })).json, before, 'a test changes nothing');
});

t.test('a project probes a limited number of destinations at once', async (t) => {
  const owner = await newKey(app);
  const other = await newKey(app);
  let release = () => {};
  const hold = new Promise<void>((resolve) => {
    release = resolve;
  });
  const first = new Set<string>();
  store.fail(({ key }) => {
    if (first.has(key) || first.size >= 16) return undefined;
    first.add(key);
    return { kind: 'hold', until: hold };
  });
  const held = Array.from({ length: 16 }, () => create(owner.key, {}));
  await until('sixteen are probing', () => first.size === 16);
  const refused = await create(owner.key, {});
  t.match(
    [refused.status, refused.json],
    [503, { error: { code: 'service.unavailable', message: /tests too many/ } }],
  );
  t.match(refused.headers, { 'retry-after': /^\d+$/ });
  t.ok(await make(other), 'another project has its share');
  release();
  for (const { status } of await Promise.all(held)) t.equal(status, 201);
  t.ok(await make(owner));
});

t.test('nothing secret was logged, or answered with an error', (t) => {
  assertNoLeaks(t, app.recorder);
  t.end();
});
