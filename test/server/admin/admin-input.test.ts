/** What requests to the admin API may say, and what they may not. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { UsageService } from '../../../gen/attestation/admin/v1/usage_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { rpcName } from '../../support/calling/rpcs.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { newKeyOf, newProject } from './new-projects.js';

const app = await startApp(t);
const admin = adminOf(app);
const { createProject, listProjects, updateProject } = ProjectService.method;
const { createApiKey, listApiKeys, updateApiKey, rotateApiKey, revokeApiKey } = ApiKeyService.method;
const { getUsage } = UsageService.method;
const { listAuditEntries } = AuditService.method;
const LIVE = Environment.LIVE;

type Bad = [method: DescMethodUnary, input: Record<string, unknown>, path: string];

t.test('values out of bounds are rejected with a pointer', async (t) => {
  const projectId = await newProject(admin);
  const { id } = await newKeyOf(admin, projectId);
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
  const projectId = await newProject(admin);
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
  const projectId = await newProject(admin, 'x'.repeat(200));
  const limits = { submissionsPerSecond: 0n, readsPerSecond: 1_000_000_000n };
  const key = await admin.ask(createApiKey, { projectId, environment: LIVE, name: '🏗'.repeat(200), limits });
  t.match(key, { limits: { submissionsPerSecond: '0', readsPerSecond: '1000000000' } });
  const overlap = { seconds: 2_592_000n };
  t.match(await admin.ask(rotateApiKey, { id: String(key.id), overlap }), {
    status: 'API_KEY_STATUS_ACTIVE',
  });
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
