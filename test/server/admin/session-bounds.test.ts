/** A session of a project gives and gets no more by API keys than a new key with the default limits would. */
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t, { type Test } from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { type Browser, type SessionOutcome, signedIn } from '../../support/calling/sessions.js';
import { newKey } from '../../support/calling/test-keys.js';

const app = await startApp(t);
const admin = adminOf(app);
const { createApiKey, getApiKey, updateApiKey, rotateApiKey, revokeApiKey } = ApiKeyService.method;

/** Limits of which some are higher than the defaults, and others lower. */
const HIGHER = {
  submissionsPerSecond: 61n,
  submissionsPerHour: 1n,
  submissionsPerDay: 1n,
  readsPerSecond: 600n,
};
/** Limits within the defaults. */
const LOW = { perSecond: 1, perHour: 1, perDay: 1, readsPerSecond: 1 };
const SOON = timestampFromDate(new Date(Date.now() + 3_600_000));
const LATE = timestampFromDate(new Date(Date.now() + 7_200_000));

type Scene = {
  tenant: Browser;
  projectId: string /** A key of the operator's with higher limits. */;
  id: string;
};

async function setScene(): Promise<Scene> {
  const { projectId } = await newKey(app);
  const tenant = await signedIn(app, { projectId, environment: Environment.LIVE });
  const { id } = await admin.ask(createApiKey, {
    projectId,
    environment: Environment.LIVE,
    name: 'of the operator',
    scopes: ['attestations:read', 'batches:read'],
    limits: HIGHER,
    expiresAt: SOON,
  });
  return { tenant, projectId, id: String(id) };
}

function assertRefused(t: Test, { code, message }: SessionOutcome, path: string, what: string): void {
  t.match({ code, message }, { code: 'request.invalid', message: new RegExp(`^${path} .*operator`) }, what);
}

t.test('a session makes keys with the default limits', async (t) => {
  const { tenant, projectId } = await setScene();
  const key = { projectId, environment: Environment.TEST, name: 'mine' };
  const higher = { limits: { submissionsPerSecond: 61n } };
  assertRefused(
    t,
    await tenant.call(createApiKey, { ...key, ...higher }),
    '/limits/submissions_per_second',
    'made',
  );
  const made = await tenant.call(createApiKey, key);
  t.equal(made.code, 'ok');
  app.recorder.secrets.add(String(made.response.secret));
  const id = String(made.response.id);
  assertRefused(
    t,
    await tenant.call(updateApiKey, { id, ...higher }),
    '/limits/submissions_per_second',
    'raised',
  );
  for (const change of [
    { scopes: ['exports:write'] },
    { limits: { readsPerSecond: 1n } },
    { limits: { readsPerSecond: 600n } },
  ])
    t.equal(
      (await tenant.call(updateApiKey, { id, ...change })).code,
      'ok',
      'within the bounds it does as it likes',
    );
  t.equal(
    (await tenant.call(updateApiKey, { id, expiry: { case: 'neverExpires', value: true } })).code,
    'ok',
  );
  t.equal((await tenant.call(rotateApiKey, { id })).code, 'ok');
});

t.test('a key with higher limits gets nothing more from a session', async (t) => {
  const { tenant, id } = await setScene();
  const before = await admin.ask(getApiKey, { id });
  const scopes = ['attestations:read', 'attestations:write'];
  assertRefused(t, await tenant.call(updateApiKey, { id, scopes }), '/scopes', 'another scope');
  const limits = { submissionsPerHour: 2n };
  assertRefused(
    t,
    await tenant.call(updateApiKey, { id, limits }),
    '/limits/submissions_per_hour',
    'another limit',
  );
  const expiry = { case: 'expiresAt' as const, value: LATE };
  assertRefused(t, await tenant.call(updateApiKey, { id, expiry }), '/expires_at', 'a longer life');
  const never = { case: 'neverExpires' as const, value: true };
  assertRefused(
    t,
    await tenant.call(updateApiKey, { id, expiry: never }),
    '/never_expires',
    'a life without end',
  );
  assertRefused(t, await tenant.call(rotateApiKey, { id }), '/id', 'its secret');
  assertRefused(
    t,
    await tenant.call(rotateApiKey, { id, expiresAt: LATE }),
    '/id',
    'a successor that lives longer',
  );
  t.same(await admin.ask(getApiKey, { id }), before, 'nothing was changed');
  t.equal((await admin.call(rotateApiKey, { id })).code, 'ok', 'the operator rotates it');
});

t.test('a session takes from a key with higher limits', async (t) => {
  const { tenant, id } = await setScene();
  const before = { case: 'expiresAt' as const, value: timestampFromDate(new Date(Date.now() + 60_000)) };
  for (const change of [
    { name: 'renamed' },
    { limits: { submissionsPerSecond: 61n } },
    { scopes: ['batches:read'] },
    { expiry: before },
  ])
    t.equal((await tenant.call(updateApiKey, { id, ...change })).code, 'ok', Object.keys(change).join());
  const lowered = await tenant.call(updateApiKey, {
    id,
    limits: { submissionsPerSecond: 60n },
    scopes: ['exports:write'],
  });
  t.equal(lowered.code, 'ok', 'with the defaults it is as a new key');
  t.equal((await tenant.call(rotateApiKey, { id })).code, 'ok');
  const another = await setScene();
  t.equal((await another.tenant.call(revokeApiKey, { id: another.id })).code, 'ok');
});

t.test('a session brings no more than 100 keys of a project to work', async (t) => {
  const { tenant, projectId } = await setScene();
  const expired = await newKey(app, { projectId, expiresAt: new Date(Date.now() - 1_000), limits: LOW });
  const working = await newKey(app, { projectId, limits: LOW });
  await app.pool`
    INSERT INTO api_key (id, project_id, environment, name, prefix, last4, hmac, scopes, submissions_per_second,
                         submissions_per_hour, submissions_per_day, reads_per_second)
    SELECT 'key_' || n, ${projectId}, 1, 'x', 'x', 'x', n::text::bytea, '{}', 1, 1, 1, 1 FROM generate_series(1, 100) n`;
  const key = { projectId, environment: Environment.TEST, name: 'one more' };
  assertRefused(t, await tenant.call(createApiKey, key), '/project_id', 'a new one');
  const expiry = { case: 'expiresAt' as const, value: SOON };
  assertRefused(
    t,
    await tenant.call(updateApiKey, { id: expired.id, expiry }),
    '/expires_at',
    'one that had expired',
  );
  const { id } = working;
  assertRefused(t, await tenant.call(rotateApiKey, { id }), '/overlap', 'two in place of one');
  const rotated = await tenant.call(rotateApiKey, { id, overlap: { seconds: 0n } });
  t.equal(rotated.code, 'ok', 'one in place of one');
  app.recorder.secrets.add(String(rotated.response.secret));
  t.equal((await admin.call(createApiKey, key)).code, 'ok', 'the operator may');
});
