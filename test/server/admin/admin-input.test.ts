/** What the admin API refuses, what its lists hold, and what it is when it is off or its database is away. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { TrustRuleService } from '../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { UsageService, UsageWindow } from '../../../gen/attestation/admin/v1/usage_pb.js';
import { Role } from '../../../gen/attestation/options/v1/options_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../support/app.js';
import { ADMIN_METHODS, adminOf } from '../../support/calling/admin.js';
import { rpcName } from '../../support/calling/rpcs.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { submit } from '../rpc/submitting.js';

const app = await startApp(t, { isProxied: true });
const admin = adminOf(app);
const { createProject, listProjects, updateProject } = ProjectService.method;
const { createApiKey, listApiKeys, updateApiKey, rotateApiKey, revokeApiKey } = ApiKeyService.method;
const { getUsage } = UsageService.method;
const { listAuditEntries } = AuditService.method;
const LIVE = Environment.LIVE;

async function newProject(name = 'a project'): Promise<string> {
  return String((await admin.ask(createProject, { name })).id);
}

async function newKeyOf(projectId: string): Promise<{ id: string; secret: string }> {
  const key = await admin.ask(createApiKey, { projectId, environment: LIVE, name: 'a key' });
  return { id: String(key.id), secret: String(key.secret) };
}

type Bad = [method: DescMethodUnary, input: Record<string, unknown>, path: string];

t.test('values out of bounds are rejected with a pointer', async (t) => {
  const projectId = await newProject();
  const { id } = await newKeyOf(projectId);
  const key = { projectId, environment: LIVE, name: 'x' };
  const past = timestampFromMs(Date.now() - 1_000);
  const names: unknown[] = ['', ' ', ' x', '\tx', 'a\nb', 'a\u0000', '\u009fx', 'x'.repeat(201)];
  const table: Bad[] = [
    ...names.flatMap((name): Bad[] => [
      [createProject, { name }, '/name'],
      [updateProject, { id: projectId, name }, '/name'],
      [createApiKey, { ...key, name }, '/name'],
      [updateApiKey, { id, name }, '/name'],
    ]),
    [createApiKey, { ...key, projectId: '' }, '/project_id'],
    [createApiKey, { ...key, projectId: 'x'.repeat(65) }, '/project_id'],
    [createApiKey, { ...key, environment: 0 }, '/environment'],
    [createApiKey, { ...key, environment: 3 }, '/environment'],
    [createApiKey, { ...key, scopes: ['all'] }, '/scopes/0'],
    [createApiKey, { ...key, scopes: ['batches:read', 'Batches:read'] }, '/scopes/1'],
    [createApiKey, { ...key, scopes: [''] }, '/scopes/0'],
    [createApiKey, { ...key, scopes: ['batches:read', 'batches:read'] }, '/scopes'],
    [createApiKey, { ...key, scopes: Array.from({ length: 51 }, (_, i) => `s${i}`) }, '/scopes'],
    [createApiKey, { ...key, limits: { readsPerSecond: -1n } }, '/limits/reads_per_second'],
    [createApiKey, { ...key, limits: { submissionsPerDay: 1_000_000_001n } }, '/limits/submissions_per_day'],
    [createApiKey, { ...key, expiresAt: past }, '/expires_at'],
    [updateApiKey, { id, scopes: ['attestations:admin'] }, '/scopes/0'],
    [updateApiKey, { id, limits: { submissionsPerHour: 2n ** 62n } }, '/limits/submissions_per_hour'],
    [updateApiKey, { id, expiry: { case: 'expiresAt', value: past } }, '/expires_at'],
    [updateApiKey, { id, expiry: { case: 'neverExpires', value: false } }, '/never_expires'],
    [updateApiKey, { id: '' }, '/id'],
    [rotateApiKey, { id, overlap: { seconds: -1n } }, '/overlap'],
    [rotateApiKey, { id, overlap: { seconds: 2_592_001n } }, '/overlap'],
    [rotateApiKey, { id, expiresAt: past }, '/expires_at'],
    [revokeApiKey, { id: 'x'.repeat(65) }, '/id'],
    [getUsage, {}, ''],
    [getUsage, { projectId, apiKeyId: id }, ''],
    [getUsage, { projectId, window: 7 }, '/window'],
    [listAuditEntries, { action: 10_000 }, '/action'],
    [listAuditEntries, { resourceId: 'x'.repeat(65) }, '/resource_id'],
    ...[listProjects, listApiKeys, listAuditEntries].flatMap((method): Bad[] => [
      [method, { limit: 0 }, '/limit'],
      [method, { limit: -1 }, '/limit'],
      [method, { limit: 201 }, '/limit'],
      [method, { cursor: 'x'.repeat(513) }, '/cursor'],
    ]),
  ];
  for (const [method, input, path] of table) {
    for (const { name, call } of admin.surfaces) {
      const outcome = await call(method, input, admin.token);
      const what = `${rpcName(method)} ${JSON.stringify(input, (_, v) => (typeof v === 'bigint' ? `${v}` : v)).slice(0, 80)} by ${name}`;
      t.match(outcome, { code: 'request.invalid', grpcCode: 3 }, what);
      const errors = (outcome.details.errors ?? []) as { path: string }[];
      t.ok(
        errors.some((error) => error.path === path),
        `${path} is pointed to, not ${JSON.stringify(errors)}`,
      );
    }
  }
  const entries = await admin.ask(listAuditEntries, { projectId });
  t.equal((entries.data as JsonObject[]).length, 2, 'nothing of that was done');
});

t.test('a request that Connect cannot parse is rejected at any length', async (t) => {
  const path = `/${ApiKeyService.typeName}/${createApiKey.name}`;
  for (const length of [100, 2_000]) {
    const body = { limits: { readsPerSecond: '\u0001'.repeat(length) } };
    const answer = await app.rest(path, { apiKey: admin.token, body });
    t.equal(answer.status, 400);
    t.match(answer.json, { details: [{ debug: { code: 'request.invalid' } }] });
    t.ok(answer.body.length < 10_000, 'without quoting it all');
  }
});

t.test('the first and the last time there is are times', async (t) => {
  const projectId = await newProject();
  const last = { seconds: 253_402_300_799n, nanos: 999_999_999 };
  const first = { seconds: -62_135_596_800n };
  const request = { projectId, environment: LIVE, name: 'x', expiresAt: last };
  const key = await admin.ask(createApiKey, request);
  t.equal(key.expiresAt, '9999-12-31T23:59:59.999Z');
  for (const time of [first, last]) {
    await admin.ask(listAuditEntries, { after: time, before: time });
    await admin.ask(getUsage, { projectId, start: time, end: time });
  }
  const { key: apiKey } = await newKey(app);
  for (const time of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999999Z']) {
    const path = `/v1/attestations?submitted_after=${time}&submitted_before=${time}`;
    t.equal((await app.rest(path, { apiKey })).status, 200, time);
  }
});

t.test('bounds themselves are taken', async (t) => {
  const projectId = await newProject('x'.repeat(200));
  const limits = { submissionsPerSecond: 0n, readsPerSecond: 1_000_000_000n };
  const key = await admin.ask(createApiKey, { projectId, environment: LIVE, name: '🏗'.repeat(200), limits });
  t.match(key, { limits: { submissionsPerSecond: '0', readsPerSecond: '1000000000' } });
  const overlap = { seconds: 2_592_000n };
  t.match(await admin.ask(rotateApiKey, { id: String(key.id), overlap }), {
    status: 'API_KEY_STATUS_ACTIVE',
  });
});

t.test('lists are read in pages, each entry once, and cursors are bound to their list', async (t) => {
  const projectId = await newProject('listed');
  const other = await newProject('another');
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await newKeyOf(projectId)).id);
  await newKeyOf(other);
  await admin.ask(revokeApiKey, { id: made[2] ?? '' });
  for (const { call } of admin.surfaces) {
    const seen: string[] = [];
    let cursor = '';
    do {
      const { response } = await call(listApiKeys, { projectId, limit: 2, cursor }, admin.token);
      seen.push(...((response.data as JsonObject[]) ?? []).map(({ id }) => String(id)));
      cursor = String(response.nextCursor ?? '');
      if (cursor === '') continue;
      t.match(cursor, /^cur_/);
      for (const [method, input] of [
        [listApiKeys, { projectId: other, cursor }],
        [listApiKeys, { cursor }],
        [listProjects, { cursor }],
        [listAuditEntries, { projectId, cursor }],
        [listApiKeys, { projectId, cursor: `${cursor}x` }],
        [listApiKeys, { projectId, cursor: 'cur_' }],
        [listApiKeys, { projectId, cursor: 'nonsense' }],
      ] as [DescMethodUnary, Record<string, unknown>][]) {
        t.equal((await call(method, input, admin.token)).code, 'cursor.invalid');
      }
    } while (cursor !== '');
    t.same(seen, made, 'newest first, the revoked one among them');
  }
  const projects: string[] = [];
  let cursor = '';
  do {
    const page = await admin.ask(listProjects, { limit: 1, cursor });
    projects.push(...(page.data as JsonObject[]).map(({ id }) => String(id)));
    cursor = String(page.nextCursor ?? '');
  } while (cursor !== '');
  t.same(projects.slice(0, 2), [other, projectId]);
  t.same(projects, [...new Set(projects)].sort().reverse());
});

t.test('usage is that of the requested project or key, and of no other', async (t) => {
  const one = await newKey(app);
  const sibling = await newKey(app, { projectId: one.projectId });
  const stranger = await newKey(app);
  for (let i = 0; i < 3; i++) await submit(app, one);
  for (let i = 0; i < 2; i++) await submit(app, sibling);
  for (let i = 0; i < 4; i++) await submit(app, stranger);
  const usage = async (input: Record<string, unknown>) => {
    const answers = await Promise.all(
      admin.surfaces.map(({ call }) => call(getUsage as DescMethodUnary, input, admin.token)),
    );
    for (const { response } of answers) t.same(response, answers[0]?.response);
    return answers[0]?.response as JsonObject;
  };
  t.match(await usage({ projectId: one.projectId }), { submissions: '5', submissionsLast24h: '5' });
  t.match(await usage({ apiKeyId: one.id }), { submissions: '3', submissionsLast24h: '3' });
  t.match(await usage({ projectId: stranger.projectId }), { submissions: '4' });
  const start = /T\d\d:00:00Z$/;
  t.match(await usage({ apiKeyId: one.id, window: UsageWindow.HOUR }), { data: [{ start }] });
  const midnight = Math.floor(Date.now() / 86_400_000) * 86_400_000;
  const before = { apiKeyId: one.id, end: timestampFromMs(midnight - 86_400_000) };
  t.match(await usage(before), { submissionsLast24h: '3' });
  t.notOk('submissions' in (await usage(before)), 'nothing until the day before yesterday');
  const since = { apiKeyId: one.id, start: timestampFromMs(midnight - 3_600_000) };
  t.match(await usage(since), { submissions: '3' });
  for (const input of [{ projectId: 'prj_none' }, { apiKeyId: 'key_none' }]) {
    t.match((await admin.call(getUsage, input)).code, /^(project|api_key)\.not_found$/);
  }
});

t.test('without an admin token there is no admin API', async (t) => {
  const off = await startApp(t, { isWithoutAdmin: true });
  const { surfaces } = adminOf(off);
  for (const method of ADMIN_METHODS) {
    for (const { name, call } of surfaces) {
      for (const token of [undefined, admin.token, 'undefined', (await newKey(off)).key]) {
        const outcome = await call(method, {}, token);
        t.equal(outcome.grpcCode, 12, `${rpcName(method)} by ${name} is unimplemented`);
      }
    }
    const answer = await off.rest(`/${method.parent.typeName}/${method.name}`, { apiKey: 'x', body: {} });
    t.equal(answer.status, 404);
    t.match(answer.json, { error: { code: 'route.not_found' } });
  }
});

t.test('nothing of an admin call that fails halfway stays', async (t) => {
  await app.pool.unsafe(`
    CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER fail BEFORE INSERT ON audit_entry EXECUTE FUNCTION fail()`);
  const before = await app.pool`SELECT id FROM project`;
  const once = { 'idempotency-key': 'half' };
  t.equal((await admin.call(createProject, { name: 'half' }, once)).code, 'service.unavailable');
  t.same(await app.pool`SELECT id FROM project`, before, 'without its audit entry there is no project');
  await app.pool.unsafe('DROP TRIGGER fail ON audit_entry');
  t.equal((await admin.call(createProject, { name: 'half' }, once)).code, 'ok', 'the key is free');
});

/** A submission whose statement is stored. */
async function submitNamed(apiKey: string): Promise<string> {
  const artifact = { sha256: 'ab'.repeat(32), name: 'a' };
  const metadata = { schema: 'purl', purl: 'pkg:npm/left-pad@1.3.0' };
  return String((await app.rest('/v1/attestations', { apiKey, body: { artifact, metadata } })).json.id);
}

t.test('the admin API returns unavailable without its database, and continues once it is back', async (t) => {
  const projectId = await newProject();
  const { id } = await newKeyOf(projectId);
  const key = await newKey(app);
  const submissionId = await submitNamed(key.key);
  const TRUST_RULE = {
    projectId,
    environment: LIVE,
    issuer: 'https://issuer.example.com',
    conditions: { sub: 'release' },
    scopes: ['attestations:write'],
  };
  const { id: ruleId } = await admin.ask(TrustRuleService.method.createTrustRule, TRUST_RULE);
  const samples: Record<string, Record<string, unknown>> = {
    CreateProject: { name: 'x' },
    GetProject: { id: projectId },
    UpdateProject: { id: projectId, name: 'y' },
    CreateApiKey: { projectId, environment: LIVE, name: 'x' },
    GetApiKey: { id },
    UpdateApiKey: { id, name: 'y' },
    RotateApiKey: { id },
    RevokeApiKey: { id },
    GetUsage: { projectId },
    AskWitness: { name: 'self-tsa' },
    CreateSignInLink: { projectId },
    EndSession: { id: 'ses_none' },
    PublishTuf: { targets: '{}', files: [{ name: 'a', content: '{}' }] },
    EraseStatement: { id: submissionId },
    CreateTrustRule: TRUST_RULE,
    GetTrustRule: { id: ruleId },
    RemoveTrustRule: { id: ruleId },
    SetRole: { projectId, personId: 'per_none', role: Role.VIEWER },
    RemoveMember: { projectId, personId: 'per_none' },
    CreateInvitation: { projectId, role: Role.VIEWER },
    DeleteInvitation: { projectId, id: 'inv_none' },
    CreateRoleRule: { projectId, role: Role.VIEWER, conditions: { groups: 'x' } },
    DeleteRoleRule: { projectId, id: 'rol_none' },
  };
  app.databaseProxy?.setOpen(false);
  app.databaseProxy?.cut();
  for (const method of ADMIN_METHODS) {
    for (const { name, call } of admin.surfaces) {
      const outcome = await call(method, samples[method.name] ?? {}, admin.token);
      t.match(outcome, { code: 'service.unavailable', grpcCode: 14 }, `${rpcName(method)} by ${name}`);
      t.match(outcome.headers['retry-after'], /^[1-9]\d?$/);
    }
  }
  t.equal((await admin.surfaces[0]?.call(listProjects, {}, 'wrong'))?.code, 'auth.invalid_key');
  app.databaseProxy?.setOpen(true);
  for (const method of ADMIN_METHODS) {
    await until(`${method.name} goes on`, async () => {
      const { code } = await admin.call(method, samples[method.name] ?? {});
      return ['ok', 'api_key.not_active', 'request.invalid'].includes(code);
    });
  }
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder, true);
});
