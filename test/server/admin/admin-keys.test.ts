/** What becomes of a key while it is in use, over two API processes, with and without NATS. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { createPrincipals } from '../../../src/server/admin/principals.js';
import { deriveKeyRing } from '../../../src/server/keys/key-ring.js';
import { type App, startApp } from '../../support/app.js';
import { type Admin, adminOf } from '../../support/calling/admin.js';
import type { Surface } from '../../support/calling/rpc-clients.js';
import { announceChange } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { creation } from '../rpc/samples.js';

const app = await startApp(t, { apis: 2 });
const admin = adminOf(app);
const { createApiKey, getApiKey, updateApiKey, revokeApiKey, rotateApiKey } = ApiKeyService.method;
const { createAttestation } = AttestationService.method;

type Key = { id: string; secret: string; projectId: string };

async function makeKey(more: object = {}, by: Admin = admin): Promise<Key> {
  const { id: projectId } = await by.ask(ProjectService.method.createProject, { name: 'a test' });
  const request = { projectId: String(projectId), environment: Environment.LIVE, name: 'ci', ...more };
  return (await by.ask(createApiKey, request)) as unknown as Key;
}

const restSurfaces = new Map<string, Surface>();

function restOf(of: App, baseUrl: string): Surface {
  const known = restSurfaces.get(baseUrl);
  const [rest] = known === undefined ? of.surfaces(baseUrl) : [known];
  if (rest === undefined) throw new Error('there is no REST surface');
  restSurfaces.set(baseUrl, rest);
  return rest;
}

/** The status of a read and of a creation by each API process. */
async function statuses({ secret }: Pick<Key, 'secret'>, of: App = app): Promise<string[]> {
  const all: string[] = [];
  for (const baseUrl of of.baseUrls) {
    const me = await fetch(`${baseUrl}/v1/attestations`, { headers: { authorization: `Bearer ${secret}` } });
    const made = await restOf(of, baseUrl).call(createAttestation, creation('c'.repeat(64)), secret);
    all.push(`${me.status} ${made.code}`);
  }
  return all;
}

const both = (status: string) => [status, status];

t.test(
  'a revoked key is rejected at once where it was revoked, and everywhere that hears of it',
  async (t) => {
    const key = await makeKey();
    t.same(await statuses(key), both('200 ok'));
    const { status, revokedAt } = await admin.ask(revokeApiKey, { id: key.id });
    t.equal(status, 'API_KEY_STATUS_REVOKED');
    t.equal((await statuses(key))[0], '401 auth.invalid_key', 'no wait here');
    await until('the other has heard of it', async () => (await statuses(key))[1] === '401 auth.invalid_key');
    const again = await admin.ask(revokeApiKey, { id: key.id });
    t.equal(again.revokedAt, revokedAt, 'revoking again changes nothing');
  },
);

t.test('scopes, limits and expiry are in force at once, in both directions', async (t) => {
  const key = await makeKey();
  t.same(await statuses(key), both('200 ok'));
  const becomes = async (what: string, change: object, expected: string) => {
    await admin.ask(updateApiKey, { id: key.id, ...change });
    t.equal((await statuses(key))[0], expected, what);
    await until(`${what} everywhere`, async () => (await statuses(key))[1] === expected);
  };
  await becomes('other scopes', { scopes: ['attestations:read'] }, '200 auth.insufficient_scope');
  await becomes('no scope but the one of all', { scopes: ['service:read'] }, '403 auth.insufficient_scope');
  await becomes('both scopes', { scopes: ['attestations:read', 'attestations:write'] }, '200 ok');
  await becomes('no submissions', { limits: { submissionsPerDay: 0n } }, '200 rate_limit.exceeded');
  await becomes('no reads', { limits: { readsPerSecond: 0n } }, '429 rate_limit.exceeded');
  await becomes('limits again', { limits: { readsPerSecond: 600n, submissionsPerDay: 100_000n } }, '200 ok');
  const soon = { seconds: BigInt(Math.floor(Date.now() / 1000) + 3_600) };
  await becomes('an expiry ahead', { expiry: { case: 'expiresAt', value: soon } }, '200 ok');
  await app.pool`UPDATE api_key SET expires_at = clock_timestamp() WHERE id = ${key.id}`;
  await becomes('what has expired', { name: 'expired' }, '401 auth.invalid_key');
  t.equal((await admin.ask(getApiKey, { id: key.id })).status, 'API_KEY_STATUS_EXPIRED');
  await becomes('no expiry', { expiry: { case: 'neverExpires', value: true } }, '200 ok');
  t.equal((await admin.ask(getApiKey, { id: key.id })).status, 'API_KEY_STATUS_ACTIVE');
});

t.test('a cached key does not outlast its revocation', async (t) => {
  const key = await makeKey();
  const ring = deriveKeyRing(app.config.secrets.secretKeys, 'api-key');
  const principals = createPrincipals(app.pool, ring, Date.now);
  const underWay = principals.get(key.secret);
  principals.evict(key.id);
  t.ok(await underWay, 'the row was read before');
  await admin.ask(revokeApiKey, { id: key.id });
  t.equal(await principals.get(key.secret), undefined, 'and was not kept');
});

t.test('requests in flight when their key is revoked are answered, and later ones rejected', async (t) => {
  const key = await makeKey();
  const [rest] = app.surfaces();
  const create = () => rest!.call(createAttestation, creation('d'.repeat(64)), key.secret);
  t.equal((await create()).code, 'ok');
  const underWay = Array.from({ length: 20 }, create);
  const revoking = admin.ask(revokeApiKey, { id: key.id });
  const codes = new Set((await Promise.all(underWay)).map(({ code }) => code));
  await revoking;
  for (const code of codes) t.ok(['ok', 'auth.invalid_key'].includes(code), code);
  t.equal((await create()).code, 'auth.invalid_key');
});

t.test('a rotated key and its successor work beside each other until the overlap is over', async (t) => {
  const rights = { scopes: ['attestations:read', 'attestations:write'], limits: { submissionsPerHour: 77n } };
  const key = await makeKey({ name: 'rotated', ...rights });
  const successor = (await admin.ask(rotateApiKey, { id: key.id })) as unknown as Key & JsonObject;
  t.match(successor, {
    name: 'rotated',
    projectId: key.projectId,
    environment: 'ENVIRONMENT_LIVE',
    scopes: rights.scopes,
    limits: { submissionsPerHour: '77', readsPerSecond: '600' },
    status: 'API_KEY_STATUS_ACTIVE',
    secret: /^svc_live_/,
  });
  t.notOk('expiresAt' in successor);
  t.not(successor.id, key.id);
  const [row] = await app.pool<{ leftMs: number }[]>`
    SELECT (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::float8 AS "leftMs" FROM api_key
    WHERE id = ${key.id}`;
  const day = 24 * 3_600_000;
  t.ok(row !== undefined && row.leftMs <= day && row.leftMs > day - 60_000, 'the old one has a day left');
  t.match(await admin.ask(getApiKey, { id: key.id }), { successorId: successor.id });
  t.same(await statuses(key), both('200 ok'));
  t.same(await statuses(successor), both('200 ok'));

  const ring = deriveKeyRing(app.config.secrets.secretKeys, 'api-key');
  let now = Date.now();
  const principals = createPrincipals(app.pool, ring, () => now);
  t.ok((await principals.get(key.secret)) && (await principals.get(successor.secret)));
  now += day;
  t.equal(await principals.get(key.secret), undefined, 'a day later it has expired');
  t.ok(await principals.get(successor.secret));

  await app.pool`UPDATE api_key SET expires_at = expires_at - interval '24 hours' WHERE id = ${key.id}`;
  await announceChange(app, key.id);
  await until('both processes refuse it', async () => {
    const now = await statuses(key);
    return now.every((status) => status === '401 auth.invalid_key');
  });
  t.same(await statuses(successor), both('200 ok'));
});

t.test('an overlap of nothing ends a key at once; one never outlasts the expiry of the key', async (t) => {
  const key = await makeKey();
  t.same(await statuses(key), both('200 ok'));
  const next = (await admin.ask(rotateApiKey, { id: key.id, overlap: {} })) as unknown as Key;
  t.equal((await statuses(key))[0], '401 auth.invalid_key');
  t.same(await statuses(next), both('200 ok'));
  const refused = await admin.call(rotateApiKey, { id: key.id });
  t.match(refused, { code: 'api_key.not_active', grpcCode: 9, details: { status: 'expired' } });

  const at = Math.floor(Date.now() / 1000) + 3_600;
  const bounded = await makeKey({ expiresAt: { seconds: BigInt(at) } });
  const successor = await admin.ask(rotateApiKey, { id: bounded.id });
  const expiry = new Date(at * 1000).toISOString().replace('.000', '');
  t.equal(successor.expiresAt, expiry, 'the successor inherits the expiry');
  t.equal((await admin.ask(getApiKey, { id: bounded.id })).expiresAt, expiry);
  const twice = await admin.call(rotateApiKey, { id: bounded.id });
  t.match(twice, { code: 'api_key.not_active', message: new RegExp(String(successor.id)) });
  const later = { seconds: BigInt(at + 86_400) };
  const last = await admin.ask(rotateApiKey, { id: String(successor.id), expiresAt: later });
  t.equal(last.expiresAt, new Date((at + 86_400) * 1000).toISOString().replace('.000', ''));
});

t.test('of two rotations at once one makes a successor, the other is rejected', async (t) => {
  const key = await makeKey();
  const outcomes = await Promise.all(
    Array.from({ length: 8 }, () => admin.call(rotateApiKey, { id: key.id })),
  );
  const codes = outcomes.map(({ code }) => code).sort();
  t.same(codes, [...Array<string>(7).fill('api_key.not_active'), 'ok']);
});

t.test(
  'a repeated creation or rotation answers with the key that was made, without its secret',
  async (t) => {
    const { projectId, id } = await makeKey();
    const request = { projectId, environment: Environment.TEST, name: 'once' };
    const once = { 'idempotency-key': 'create-1' };
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () => admin.call(createApiKey, request, once)),
    );
    const ids = new Set(outcomes.map(({ response }) => response.id));
    t.equal(ids.size, 1);
    t.equal(outcomes.filter(({ response }) => 'secret' in response).length, 1, 'the secret is shown once');
    for (const { response, headers } of outcomes) {
      t.equal(headers['idempotent-replayed'], 'secret' in response ? undefined : 'true');
    }
    for (const { call } of admin.surfaces) {
      const replayed = await call(createApiKey, request, admin.token, once);
      t.match(replayed, {
        code: 'ok',
        response: { id: [...ids][0] },
        headers: { 'idempotent-replayed': 'true' },
      });
      t.notOk('secret' in replayed.response);
    }
    const other = await admin.call(createApiKey, { ...request, name: 'other' }, once);
    t.match(other, { code: 'idempotency.key_reused', grpcCode: 9 });
    t.match(await admin.call(revokeApiKey, { id }, once), { code: 'idempotency.key_reused' });
    t.match(await admin.call(revokeApiKey, { id }, { 'idempotency-key': 'ü' }), {
      code: 'idempotency.key_invalid',
    });

    const rotation = { 'idempotency-key': 'rotate-1' };
    const first = await admin.ask(rotateApiKey, { id }, rotation);
    const { secret: _, ...shown } = first;
    t.same(await admin.ask(rotateApiKey, { id }, rotation), shown, 'and not a second successor');
  },
);

t.test('no secret was logged, or sent to rejected callers', async (t) => {
  assertNoLeaks(t, app.recorder);
});

t.test('without NATS a process forgets a key after a while', async (t) => {
  const alone = await startApp(t, { apis: 2, natsUrl: 'nats://127.0.0.1:9' });
  const by = adminOf(alone);
  const keys = { revoked: await makeKey({}, by), bounded: await makeKey({}, by) };
  for (const key of Object.values(keys)) t.same(await statuses(key, alone), both('200 ok'));
  await by.ask(revokeApiKey, { id: keys.revoked.id });
  await by.ask(updateApiKey, { id: keys.bounded.id, scopes: ['attestations:read'] });
  t.equal((await statuses(keys.revoked, alone))[0], '401 auth.invalid_key');
  t.equal((await statuses(keys.bounded, alone))[0], '200 auth.insufficient_scope');
  await until('the other process looks again', async () => {
    const [, revoked] = await statuses(keys.revoked, alone);
    const [, bounded] = await statuses(keys.bounded, alone);
    return revoked === '401 auth.invalid_key' && bounded === '200 auth.insufficient_scope';
  });
});
