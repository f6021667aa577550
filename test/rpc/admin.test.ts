import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { ApiKeyService } from '../../gen/attestation/admin/v1/api_keys_pb.js';
import { ProjectService } from '../../gen/attestation/admin/v1/projects_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { SCOPES } from '../../src/app/keys.js';
import { ADMIN_METHODS, adminOf } from '../support/admin.js';
import { startApp } from '../support/app.js';
import { assertNoLeaks } from '../support/recorder.js';
import { publicMethods, rpcName } from '../support/rpcs.js';
import { newKey } from '../support/test-keys.js';
import { until } from '../support/until.js';
import { NOTHING, sampleOf } from './samples.js';

const app = await startApp(t);
const admin = adminOf(app);
const { createProject, getProject, listProjects, updateProject } = ProjectService.method;
const { createApiKey, getApiKey, listApiKeys, updateApiKey, revokeApiKey, rotateApiKey } =
  ApiKeyService.method;
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
  for (const method of await publicMethods()) {
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

t.test('what is not there is not found', async (t) => {
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

t.test('nothing secret was logged, or answered to those who were refused', async (t) => {
  assertNoLeaks(t, app.recorder);
});
