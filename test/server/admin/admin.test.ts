import type { DescMethodUnary, JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import {
  AuditAction,
  AuditService,
  type ListAuditEntriesRequestSchema,
} from '../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { SCOPES } from '../../../src/protocol/scopes.js';
import { startApp } from '../../support/app.js';
import { ADMIN_METHODS, adminOf } from '../../support/calling/admin.js';
import { keyedMethods, rpcName } from '../../support/calling/rpcs.js';
import type { Outcome } from '../../support/calling/surfaces.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { NOTHING, sampleOf } from '../rpc/samples.js';

const app = await startApp(t);
const admin = adminOf(app);
const { createProject, getProject, listProjects, updateProject } = ProjectService.method;
const { createApiKey, getApiKey, listApiKeys, updateApiKey, revokeApiKey, rotateApiKey } =
  ApiKeyService.method;
const { listAuditEntries } = AuditService.method;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

async function newProject(name = 'a project'): Promise<string> {
  return String((await admin.ask(createProject, { name })).id);
}

type KeyAnswer = JsonObject & { id: string; secret: string };

async function makeKey(projectId: string, more: object = {}): Promise<KeyAnswer> {
  const request = { projectId, environment: Environment.LIVE, name: 'ci', ...more };
  return (await admin.ask(createApiKey, request)) as KeyAnswer;
}

t.test('only the admin token opens the admin API, on every surface and RPC', async (t) => {
  const key = await newKey(app);
  for (const method of ADMIN_METHODS) {
    for (const { name, call } of admin.surfaces) {
      const what = `${rpcName(method)} by ${name}`;
      t.match(
        await call(method, {}, undefined),
        {
          code: 'auth.missing_credentials',
          grpcCode: 16,
          message: /with the admin token$/,
          headers: { 'www-authenticate': 'Bearer' },
        },
        what,
      );
      for (const wrong of ['nonsense', `${admin.token}x`, admin.token.slice(1), 'x'.repeat(8_000)]) {
        t.match(
          await call(method, {}, wrong),
          { code: 'auth.invalid_key', grpcCode: 16, message: 'this is not the admin token' },
          what,
        );
      }
      t.match(
        await call(method, {}, key.key),
        { code: 'auth.insufficient_scope', grpcCode: 7, details: { required: 'admin' } },
        what,
      );
    }
  }
});

t.test('the admin token opens nothing of the public API', async (t) => {
  for (const method of await keyedMethods()) {
    for (const { name, call } of app.surfaces()) {
      const outcome = await call(method, sampleOf(method, NOTHING), admin.token);
      t.equal(outcome.code, 'auth.invalid_key', `${rpcName(method)} by ${name}`);
    }
  }
});

t.test('the admin API has no REST paths', async (t) => {
  for (const path of ['/v1/projects', '/v1/admin/projects', '/v1/api_keys']) {
    const { status, json } = await app.rest(path, { apiKey: admin.token });
    t.equal(status, 404);
    t.match(json, { error: { code: 'route.not_found' } });
  }
});

t.test('a project is made, read, renamed and listed', async (t) => {
  for (const { name, call } of admin.surfaces) {
    const made = await call(createProject, { name: 'Überbau 🏗' }, admin.token);
    t.match(made, { code: 'ok', response: { id: /^prj_\w{26}$/, name: 'Überbau 🏗', createdAt: TIME } }, name);
    const id = String(made.response.id);
    t.same((await call(getProject, { id }, admin.token)).response, made.response);
    const renamed = { ...made.response, name: 'new' };
    t.same((await call(updateProject, { id, name: 'new' }, admin.token)).response, renamed);
    t.same((await call(updateProject, { id }, admin.token)).response, renamed, 'nothing to change');
    const { data } = (await call(listProjects, {}, admin.token)).response;
    t.same((data as JsonObject[])[0], renamed, 'the newest comes first');
  }
});

t.test('missing resources return not found', async (t) => {
  for (const { call } of admin.surfaces) {
    for (const method of [getProject, updateProject] as DescMethodUnary[]) {
      t.match(await call(method, { id: 'prj_none' }, admin.token), {
        code: 'project.not_found',
        grpcCode: 5,
      });
    }
    for (const method of [getApiKey, updateApiKey, revokeApiKey, rotateApiKey] as DescMethodUnary[]) {
      t.match(await call(method, { id: 'key_none' }, admin.token), {
        code: 'api_key.not_found',
        grpcCode: 5,
      });
    }
    t.match(await call(listApiKeys, { projectId: 'prj_none' }, admin.token), { code: 'project.not_found' });
    const request = { projectId: 'prj_none', environment: Environment.LIVE, name: 'x' };
    t.match(await call(createApiKey, request, admin.token), { code: 'project.not_found' });
  }
});

t.test('a key is made with its rights, its secret is shown once, and it works', async (t) => {
  const projectId = await newProject('owner');
  for (const { name, call } of admin.surfaces) {
    const expiresAt = { seconds: BigInt(Math.floor(Date.now() / 1000) + 3_600) };
    const request = {
      projectId,
      environment: Environment.TEST,
      name: 'ci',
      scopes: ['batches:read', 'service:read'],
      limits: { submissionsPerHour: 7n, readsPerSecond: 100n },
      expiresAt,
    };
    const made = await call(createApiKey, request, admin.token);
    t.equal(made.code, 'ok', name);
    const { secret, ...shown } = made.response as KeyAnswer;
    t.match(secret, /^svc_test_[0-9A-Za-z]{38}$/);
    t.match(shown, {
      id: /^key_\w{26}$/,
      projectId,
      environment: 'ENVIRONMENT_TEST',
      name: 'ci',
      prefix: 'svc_test_',
      last4: secret.slice(-4),
      scopes: ['batches:read'],
      limits: {
        submissionsPerSecond: '60',
        submissionsPerHour: '7',
        submissionsPerDay: '100000',
        readsPerSecond: '100',
      },
      status: 'API_KEY_STATUS_ACTIVE',
      createdAt: TIME,
      expiresAt: TIME,
    });
    const { id } = shown;
    t.same((await call(getApiKey, { id }, admin.token)).response, shown, 'without the secret');
    const [listed] = (await call(listApiKeys, { projectId }, admin.token)).response.data as JsonObject[];
    t.same(listed, shown);
    const me = await app.rest('/v1/service/me', { apiKey: secret });
    t.match(me.json, { project: { id: projectId, name: 'owner' }, scopes: ['batches:read'] });
    await until('it is noted that the key was used', async () => {
      const { lastUsedAt } = await admin.ask(getApiKey, { id });
      return lastUsedAt !== undefined;
    });
  }
  t.same((await makeKey(projectId)).scopes, SCOPES, 'every scope when none is named');
});

t.test('every change is in the audit log, and nothing else is', async (t) => {
  for (const { name, call } of admin.surfaces) {
    const send = (method: DescMethodUnary, request: Record<string, unknown>) =>
      call(method, request, admin.token);
    const project = await send(createProject, { name: 'audited' });
    const projectId = String(project.response.id);
    const renamed = await send(updateProject, { id: projectId, name: 'renamed' });
    await send(updateProject, { id: projectId, name: 'renamed' });
    const request = { projectId, environment: Environment.LIVE, name: 'ci', scopes: ['batches:read'] };
    const created = await send(createApiKey, request);
    const id = String(created.response.id);
    const change = { id, name: 'new', scopes: ['batches:read'], limits: { readsPerSecond: 5n } };
    const changed = await send(updateApiKey, change);
    const rotated = await send(rotateApiKey, { id, overlap: { seconds: 60n } });
    const revoked = await send(revokeApiKey, { id });
    await send(revokeApiKey, { id });
    t.match(await send(updateApiKey, change), { code: 'api_key.not_active', details: { status: 'revoked' } });

    const successor = String(rotated.response.id);
    const expected: [action: string, resourceId: string, by: Outcome, detail: JsonObject][] = [
      ['API_KEY_REVOKED', id, revoked, {}],
      ['API_KEY_ROTATED', id, rotated, { successor, overlap_seconds: 60 }],
      ['API_KEY_CREATED', successor, rotated, { environment: 'live', name: 'new' }],
      ['API_KEY_LIMITS_CHANGED', id, changed, { reads_per_second: { from: 600, to: 5 } }],
      ['API_KEY_CHANGED', id, changed, { name: { from: 'ci', to: 'new' } }],
      ['API_KEY_CREATED', id, created, { environment: 'live', name: 'ci', scopes: ['batches:read'] }],
      ['PROJECT_CHANGED', projectId, renamed, { name: { from: 'audited', to: 'renamed' } }],
      ['PROJECT_CREATED', projectId, project, { name: 'audited' }],
    ];
    const { response } = await send(listAuditEntries, { projectId });
    const entries = response.data as JsonObject[];
    t.equal(entries.length, expected.length, name);
    const byTime = (a: string, b: string) => (a < b ? 1 : -1);
    t.same(
      entries.map((entry) => String(entry.id)),
      entries.map((entry) => String(entry.id)).sort(byTime),
      'the newest comes first',
    );
    for (const [action, resourceId, { requestId }, detail] of expected) {
      const found = entries.find(
        (entry) => entry.action === `AUDIT_ACTION_${action}` && entry.resourceId === resourceId,
      );
      t.match(found, {
        id: /^aud_\w{26}$/,
        projectId,
        at: TIME,
        actor: { kind: 'AUDIT_ACTOR_KIND_ADMIN', id: 'api' },
        requestId,
        detail,
      });
    }
  }
});

t.test('the audit log is filtered by project, action, resource and time, and read in pages', async (t) => {
  const projectId = await newProject('filtered');
  const keys = [await makeKey(projectId), await makeKey(projectId), await makeKey(projectId)];
  const id = String(keys[1]?.id);
  await admin.ask(revokeApiKey, { id });
  const list = async (filters: MessageInitShape<typeof ListAuditEntriesRequestSchema>) =>
    ((await admin.ask(listAuditEntries, { projectId, ...filters })).data ?? []) as JsonObject[];
  t.equal((await list({})).length, 5);
  t.equal((await list({ action: AuditAction.API_KEY_CREATED })).length, 3);
  t.match(await list({ resourceId: id }), [
    { action: 'AUDIT_ACTION_API_KEY_REVOKED' },
    { action: 'AUDIT_ACTION_API_KEY_CREATED' },
  ]);
  const [newest] = await list({ limit: 1 });
  const at = timestampFromDate(new Date(String(newest?.at)));
  t.same(await list({ after: at }), []);
  t.equal((await list({ before: at })).length, 4);
  t.same(await list({ projectId: 'prj_none' }), []);

  const paged: JsonObject[] = [];
  for (let cursor = '', first = true; first || cursor !== ''; first = false) {
    const page = await admin.ask(listAuditEntries, { projectId, limit: 2, cursor });
    t.ok((page.data as JsonObject[]).length <= 2);
    paged.push(...(page.data as JsonObject[]));
    cursor = String(page.nextCursor ?? '');
    if (cursor !== '') {
      const other = await admin.call(listAuditEntries, { projectId, resourceId: id, cursor });
      t.equal(other.code, 'cursor.invalid', 'a cursor is bound to its filters');
    }
  }
  t.same(paged, await list({}));
});

t.test('no secret was logged, or sent to rejected callers', async (t) => {
  assertNoLeaks(t, app.recorder);
});
