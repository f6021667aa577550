/** Roles of people in projects: given by rules, changed, taken and listed; and who is an operator. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AuditService } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { ProjectService } from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { newBrowser } from '../../../support/calling/sessions.js';
import { signInAs } from '../../../support/identities/login-provider.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { data, setPeopleScene } from './people-scene.js';

const { app, admin, newProject, account, personOf } = await setPeopleScene(t);
const {
  createInvitation,
  createRoleRule,
  deleteRoleRule,
  listInvitations,
  listPeople,
  listRoleRules,
  removeMember,
  setRole,
} = PersonService.method;
const { getSession } = SessionService.method;
const { getProject, listProjects } = ProjectService.method;

t.test('a rule gives its role at each sign-in, and takes it when it is deleted or not met', async (t) => {
  const projectId = await newProject();
  const rule = (role: Role, conditions: Record<string, string>) =>
    admin.ask(createRoleRule, { projectId, role, conditions });
  const viewers = await rule(Role.VIEWER, { email: '*@ruled.example' });
  const admins = await rule(Role.ADMIN, { groups: 'acme/*', department: '7' });
  t.match(data(await admin.ask(listRoleRules, { projectId })), [{ id: admins.id }, { id: viewers.id }]);
  account('rut', { email: 'rut@ruled.example', groups: ['x', 'acme/devs'], department: 7 });
  account('not', { email: 'not@ruled.example', email_verified: false, groups: ['acme/devs'] });
  t.match((await signInAs(app, 'not')).outcome, { status: 401 });
  const { browser, outcome } = await signInAs(app, 'rut');
  t.match(outcome.response, { role: 'ROLE_ADMIN' });
  t.match(data(await admin.ask(listPeople, { projectId })), [
    { role: 'ROLE_ADMIN', ruleIds: [viewers.id, admins.id] },
  ]);
  account('rut', { email: 'rut@ruled.example', groups: [] });
  t.match((await signInAs(app, 'rut')).outcome.response, { role: 'ROLE_VIEWER' }, 'by the claims of now');
  t.equal((await browser.call(getProject, { id: projectId })).code, 'ok');
  t.same(await admin.ask(deleteRoleRule, { projectId, id: String(viewers.id) }), { deleted: true });
  t.match(await browser.call(getProject, { id: projectId }), { status: 404, code: 'project.not_found' });
  t.match((await signInAs(app, 'rut')).outcome, { status: 401 });
});

t.test('a role that is changed or taken is so with the next request', async (t) => {
  const projectId = await newProject();
  const boss = await personOf('boss', projectId, Role.ADMIN);
  const other = await personOf('other', projectId, Role.ADMIN);
  const set = (role: Role) => boss.call(setRole, { projectId, personId: other.id, role });
  t.equal((await other.call(listInvitations, {})).code, 'ok');
  t.match((await set(Role.VIEWER)).response, { role: 'ROLE_VIEWER' });
  t.match(await other.call(listInvitations, {}), { status: 403, code: 'auth.insufficient_scope' });
  t.equal((await other.call(listPeople, {})).code, 'ok');
  t.match((await boss.call(removeMember, { personId: other.id })).response, { removed: true });
  t.match(await other.call(listPeople, {}), { status: 404, code: 'project.not_found' });
  t.same((await boss.call(removeMember, { personId: other.id })).response, {}, 'once');
  t.match(await set(Role.VIEWER), { code: 'request.invalid', message: /\/person_id/ });
  const { data: entries } = await admin.ask(AuditService.method.listAuditEntries, { projectId });
  t.match(entries, [
    { action: 'AUDIT_ACTION_MEMBER_REMOVED', resourceId: other.id, detail: { role: 'viewer' } },
    { action: 'AUDIT_ACTION_MEMBER_CHANGED', detail: { role: { from: 'admin', to: 'viewer' } } },
    { action: 'AUDIT_ACTION_MEMBER_ADDED', resourceId: other.id, detail: { role: 'admin' } },
    { action: 'AUDIT_ACTION_INVITATION_CREATED' },
    { action: 'AUDIT_ACTION_MEMBER_ADDED', resourceId: boss.id },
  ]);
});

t.test('operators are made by operators, and no project makes one', async (t) => {
  const projectId = await newProject();
  const boss = await personOf('chief', projectId, Role.ADMIN);
  const table: [method: DescMethodUnary, input: Record<string, unknown>][] = [
    [createInvitation, { role: Role.OPERATOR }],
    [createRoleRule, { role: Role.OPERATOR, conditions: { groups: 'x' } }],
    [setRole, { personId: boss.id, role: Role.OPERATOR }],
  ];
  for (const [method, input] of table) {
    t.match(await boss.call(method, input), { code: 'request.invalid', message: /\/role/ }, method.name);
    t.match(await admin.call(method, { ...input, role: Role.ADMIN }), { code: 'request.invalid' });
  }
  const op = await personOf('op', '', Role.OPERATOR);
  t.equal((await op.call(listProjects, {})).code, 'ok');
  t.match((await op.call(getSession, {})).response, { role: 'ROLE_OPERATOR' });
  t.match(data((await op.call(listPeople, {})).response).length > 2, true, 'who sees all');
  t.equal((await op.call(removeMember, { personId: op.id })).code, 'ok');
  t.equal((await op.call(listProjects, {})).status, 403, 'and is none any more');
  const rule = await admin.ask(createRoleRule, { role: Role.OPERATOR, conditions: { groups: 'sre' } });
  const { browser } = await signInAs(app, account('sam', { groups: ['sre'] }));
  t.equal((await browser.call(listProjects, {})).code, 'ok');
  await admin.ask(deleteRoleRule, { id: String(rule.id) });
  t.equal((await browser.call(listProjects, {})).status, 403);
});

t.test('lists are read in pages', async (t) => {
  const projectId = await newProject();
  for (const name of ['p1', 'p2', 'p3']) await personOf(name, projectId, Role.VIEWER);
  const seen: unknown[] = [];
  let cursor = '';
  do {
    const page = await admin.ask(listPeople, { projectId, limit: 1, cursor });
    seen.push(...data(page).map(({ person }) => (person as JsonObject).name));
    cursor = String(page.nextCursor ?? '');
  } while (cursor !== '');
  t.same(seen, ['p3', 'p2', 'p1']);
  const stranger = newBrowser(app);
  t.equal((await stranger.call(listPeople, { projectId })).status, 401);
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
