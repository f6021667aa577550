import { randomBytes } from 'node:crypto';
import { getOption } from '@bufbuild/protobuf';
import t from 'tap';
import { rules as rulesOption } from '../../../gen/attestation/options/v1/options_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { SCOPES } from '../../../src/protocol/scopes.js';
import { createPrincipals } from '../../../src/server/admin/principals.js';
import { revokeApiKey } from '../../../src/server/admin/store/api-keys.js';
import { createApiKey } from '../../../src/server/keys/api-key.js';
import { deriveKeyRing } from '../../../src/server/keys/key-ring.js';
import { startApp } from '../../support/app.js';
import { keyedMethods, rpcName } from '../../support/calling/rpcs.js';
import { announceChange, expiredKey, newKey, revokedKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { NOTHING, sampleOf } from './samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const methods = await keyedMethods();
const { getMe, getHealth } = InfoService.method;
const UNIVERSAL = 'service:read';

function scopesOf(method: (typeof methods)[number]): string[] {
  const { scope, moreScopes } = getOption(method, rulesOption);
  return [scope, ...moreScopes];
}

/** Another last character: the checksum no longer fits. */
function mistyped(key: string): string {
  return key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
}

t.test('every RPC rejects callers without a key, on every surface', async (t) => {
  const headers: Record<string, string>[] = [
    {},
    { authorization: '' },
    { authorization: 'Basic YTpi' },
    { authorization: 'Bearer' },
  ];
  for (const method of methods) {
    for (const { name, call } of surfaces) {
      for (const header of headers) {
        const outcome = await call(method, sampleOf(method, NOTHING), undefined, header);
        const what = `${rpcName(method)} by ${name} with ${JSON.stringify(header)}`;
        t.match(outcome, { code: 'auth.missing_credentials', status: name === 'REST' ? 401 : 0 }, what);
        t.equal(outcome.grpcCode, name === 'REST' ? 0 : 16);
        t.match(outcome.headers, { 'www-authenticate': 'Bearer', 'x-request-id': outcome.requestId });
      }
    }
  }
});

t.test(
  'every RPC rejects keys that are malformed, mistyped, unknown, revoked or expired, all alike',
  async (t) => {
    const good = await newKey(app);
    const unknown = createApiKey(Environment.LIVE, randomBytes);
    app.recorder.secrets.add(unknown);
    const keys: [what: string, key: string][] = [
      ['nonsense', 'nonsense'],
      ['cut short', good.key.slice(0, -1)],
      ['too long', `${good.key}0`],
      ['of an environment that is none', good.key.replace('live', 'prod')],
      ['of the other environment', good.key.replace('live', 'test')],
      ['followed by more', `${good.key} more`],
      ['very long', 'x'.repeat(8_000)],
      ['with a wrong checksum', mistyped(good.key)],
      ['unknown', unknown],
      ['revoked', (await revokedKey(app)).key],
      ['expired', (await expiredKey(app)).key],
    ];
    const told = new Set<string>();
    for (const method of methods) {
      for (const { name, call } of surfaces) {
        for (const [what, key] of keys) {
          const outcome = await call(method, sampleOf(method, NOTHING), key);
          t.equal(outcome.code, 'auth.invalid_key', `${rpcName(method)} by ${name}: ${what}`);
          told.add(JSON.stringify([outcome.message, outcome.details, outcome.headers['www-authenticate']]));
        }
        t.equal((await call(getHealth, {}, good.key)).code, 'ok');
      }
    }
    t.equal(told.size, 1, 'nothing tells one from another');
  },
);

t.test('every RPC rejects keys without one of its scopes and names it, and wants no other', async (t) => {
  for (const method of methods) {
    const only = await newKey(app, { scopes: scopesOf(method).filter((scope) => scope !== UNIVERSAL) });
    for (const { name, call } of surfaces) {
      const allowed = await call(method, sampleOf(method, NOTHING), only.key);
      t.notMatch(allowed.code, /^auth\./, `${rpcName(method)} by ${name}`);
    }
  }
  for (const [method, scope] of methods.flatMap((one) =>
    scopesOf(one).map((scope) => [one, scope] as const),
  )) {
    t.ok(scope === UNIVERSAL || SCOPES.includes(scope), `keys can have ${scope}`);
    const others = await newKey(app, { scopes: SCOPES.filter((other) => other !== scope) });
    for (const { name, call } of surfaces) {
      const what = `${rpcName(method)} by ${name} without ${scope}`;
      const outcome = await call(method, sampleOf(method, NOTHING), others.key);
      if (scope === UNIVERSAL) {
        t.equal(outcome.code, 'ok', what);
      } else {
        t.match(outcome, { code: 'auth.insufficient_scope', details: { required: scope } }, what);
        t.equal(name === 'REST' ? outcome.status : outcome.grpcCode, name === 'REST' ? 403 : 7, what);
      }
    }
  }
});

t.test('a key works for the environment it is made for', async (t) => {
  const live = await newKey(app);
  const test = await newKey(app, { environment: Environment.TEST, projectId: live.projectId });
  for (const { name, call } of surfaces) {
    const [asLive, asTest] = [await call(getMe, {}, live.key), await call(getMe, {}, test.key)];
    t.match(
      asLive.response,
      { project: { id: live.projectId }, apiKey: { environment: 'ENVIRONMENT_LIVE' } },
      name,
    );
    t.match(
      asTest.response,
      { project: { id: live.projectId }, apiKey: { environment: 'ENVIRONMENT_TEST' } },
      name,
    );
  }
});

t.test('the scheme of the Authorization header is read in any case', async (t) => {
  const { key } = await newKey(app);
  for (const authorization of [`bearer ${key}`, `BEARER   ${key}`]) {
    const answer = await app.rest('/v1/service/me', { headers: { authorization } });
    t.equal(answer.status, 200);
  }
});

t.test('a key that runs out while it is in use is rejected from then on', async (t) => {
  const { key } = await newKey(app, { expiresAt: new Date(Date.now() + 60_000) });
  let now = Date.now();
  const ring = deriveKeyRing(app.config.secrets.secretKeys, 'api-key');
  const principals = createPrincipals(app.pool, ring, () => now);
  t.ok(await principals.get(key));
  now += 60_000;
  t.equal(await principals.get(key), undefined);
});

t.test(
  'a revoked key is rejected as soon as a process is notified, and within seconds without a notification',
  async (t) => {
    const { key, id } = await newKey(app);
    const ring = deriveKeyRing(app.config.secrets.secretKeys, 'api-key');
    const [told, untold] = [1, 2].map(() => createPrincipals(app.pool, ring, Date.now));
    t.ok(await told?.get(key));
    t.ok(await untold?.get(key));
    t.equal((await app.rest('/v1/service/me', { apiKey: key })).status, 200);

    t.ok(await revokeApiKey(app.pool, id));
    told?.evict(id);
    await announceChange(app, id);
    t.equal(await told?.get(key), undefined);
    t.ok(await untold?.get(key));
    await until('the API has heard of it', async () => {
      const { status } = await app.rest('/v1/service/me', { apiKey: key });
      return status === 401;
    });
  },
);

t.test(
  'an unknown key is looked up once in a while, and works as soon as a process is notified',
  async (t) => {
    const { key, id } = await newKey(app);
    const ring = deriveKeyRing(app.config.secrets.secretKeys, 'api-key');
    const principals = createPrincipals(app.pool, ring, Date.now);
    await app.pool`UPDATE api_key SET expires_at = now() - interval '1 second' WHERE id = ${id}`;
    const found = await Promise.all([principals.get(key), principals.get(key)]);
    t.same(found, [undefined, undefined]);
    await app.pool`UPDATE api_key SET expires_at = NULL WHERE id = ${id}`;
    t.equal(await principals.get(key), undefined, 'nothing is asked of the database');
    principals.evict('key_another');
    t.ok(await principals.get(key), 'any change is heard of');
  },
);

t.test('no secret was logged, or sent to rejected callers', async (t) => {
  assertNoLeaks(t, app.recorder);
});
