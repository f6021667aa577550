/** Lists of the admin API and their cursors. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { newKeyOf, newProject } from './new-projects.js';

const app = await startApp(t);
const admin = adminOf(app);
const { listProjects } = ProjectService.method;
const { listApiKeys, revokeApiKey } = ApiKeyService.method;
const { listAuditEntries } = AuditService.method;

t.test('lists are read in pages, each entry once, and cursors are bound to their list', async (t) => {
  const projectId = await newProject(admin, 'listed');
  const other = await newProject(admin, 'another');
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await newKeyOf(admin, projectId)).id);
  await newKeyOf(admin, other);
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

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
