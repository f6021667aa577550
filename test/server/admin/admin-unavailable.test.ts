/** The admin API when it is off, when a call fails halfway, and when its database is away. */
import t from 'tap';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { TrustRuleService } from '../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { Role } from '../../../gen/attestation/options/v1/options_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../support/app.js';
import { ADMIN_METHODS, adminOf } from '../../support/calling/admin.js';
import { rpcName } from '../../support/calling/rpcs.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { newKeyOf, newProject } from './new-projects.js';

const app = await startApp(t, { isProxied: true });
const admin = adminOf(app);
const { createProject, listProjects } = ProjectService.method;
const LIVE = Environment.LIVE;

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
  const projectId = await newProject(admin);
  const { id } = await newKeyOf(admin, projectId);
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
