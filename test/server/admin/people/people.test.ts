/** People: how they get roles in projects, by rules and invitations, and lose them. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { ApiKeyService } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { ProjectService } from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { TrustRuleService } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { pruneInvitations } from '../../../../src/server/admin/store/invitations.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { type Browser, newBrowser, signedIn } from '../../../support/calling/sessions.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { signInAs, startLoginProvider } from '../../../support/identities/login-provider.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';

const provider = await startLoginProvider(t);
const app = await startApp(t, {
  isWithoutWorker: true,
  env: { ...provider.env, OIDC_OPERATORS: 'groups=platform', TRUSTED_PROXIES: '127.0.0.0/8,::1' },
});
provider.register(app);
const admin = adminOf(app);
const {
  createInvitation,
  createRoleRule,
  deleteInvitation,
  deleteRoleRule,
  listInvitations,
  listPeople,
  listRoleRules,
  removeMember,
  setRole,
} = PersonService.method;
const { endSession, getSession, listSessions, revokeSessions } = SessionService.method;
const { createApiKey, listApiKeys } = ApiKeyService.method;
const { getProject, listProjects } = ProjectService.method;

const newProject = async () => (await newKey(app)).projectId;

function account(name: string, more: Record<string, unknown> = {}): string {
  provider.accounts.set(name, { name, email: `${name}@example.com`, email_verified: true, ...more });
  return name;
}

/** Invites somebody. @returns the secret of the invitation, and it */
async function invite(projectId: string, role: Role, email = '') {
  const made = await admin.ask(createInvitation, { projectId, role, email });
  const secret = new URL(String(made.url)).hash.slice(1);
  app.recorder.secrets.add(secret);
  return { made, id: String(made.id), secret };
}

/** Somebody new with a role in the project, signed in. */
async function personOf(name: string, projectId: string, role: Role): Promise<Browser & { id: string }> {
  const { browser, outcome } = await signInAs(app, account(name), (await invite(projectId, role)).secret);
  if (outcome.code !== 'ok') throw new Error(`${name}: ${outcome.code} ${outcome.message}`);
  return Object.assign(browser, { id: (outcome.response.person as { id: string }).id });
}

const data = (answer: JsonObject) => (answer.data ?? []) as JsonObject[];

t.test('an invitation gives its role once, to the first who has it', async (t) => {
  const projectId = await newProject();
  const { secret, made: invitation } = await invite(projectId, Role.MEMBER);
  t.equal(invitation.url, `${app.baseUrl}/dashboard/invitation#${secret}`);
  t.match(invitation, { id: /^inv_/, projectId, role: 'ROLE_MEMBER' });
  t.match(data(await admin.ask(listInvitations, { projectId })), [{ id: invitation.id }]);
  t.notMatch(JSON.stringify(await admin.ask(listInvitations, { projectId })), secret);
  const { outcome, browser } = await signInAs(app, account('ina'), secret);
  const memberships = [{ projectId, role: 'ROLE_MEMBER' }];
  t.match(outcome, { code: 'ok', response: { role: 'ROLE_MEMBER', memberships } });
  t.equal((await browser.call(getProject, { id: projectId })).code, 'ok');
  t.same(data(await admin.ask(listInvitations, { projectId })), []);
  const again = await signInAs(app, account('ivo'), secret);
  t.match(again.outcome, { status: 401, message: /accepted already, taken back, or has expired/ });
  t.match(data(await admin.ask(listPeople, { projectId })), [
    { person: { name: 'ina', email: 'ina@example.com' }, role: 'ROLE_MEMBER', invitedAs: 'ROLE_MEMBER' },
  ]);
  t.equal((await signInAs(app, 'ina')).outcome.code, 'ok', 'the role stays');
});

t.test('an invitation for an e-mail address wants it verified, and waits for the right person', async (t) => {
  const projectId = await newProject();
  const { secret } = await invite(projectId, Role.ADMIN, 'Right@Example.com');
  account('unverified', { email: 'right@example.com', email_verified: false });
  account('text', { email: 'right@example.com', email_verified: 'true' });
  account('without', { email: 'right@example.com', email_verified: undefined });
  account('wrong');
  for (const name of ['unverified', 'text', 'without', 'wrong']) {
    const { outcome } = await signInAs(app, name, secret);
    t.match(outcome, { status: 401, message: /for another e-mail address/ }, name);
  }
  t.same(await app.pool`SELECT FROM person WHERE name IN ('unverified', 'text', 'without', 'wrong')`, []);
  t.match((await signInAs(app, account('right'), secret)).outcome.response, { role: 'ROLE_ADMIN' });
});

t.test('an invitation ends when its time is over and when it is taken back', async (t) => {
  const projectId = await newProject();
  const [old, back] = [await invite(projectId, Role.VIEWER), await invite(projectId, Role.VIEWER)];
  await app.pool`UPDATE invitation SET expires_at = clock_timestamp() WHERE id = ${old.id}`;
  t.same(await admin.ask(deleteInvitation, { projectId, id: back.id }), { deleted: true });
  t.same(await admin.ask(deleteInvitation, { projectId, id: back.id }), {});
  for (const { secret } of [old, back]) {
    t.match((await signInAs(app, account('late'), secret)).outcome, { status: 401, message: /has expired/ });
  }
  await pruneInvitations(app.pool);
  t.same(await app.pool`SELECT FROM invitation WHERE project_id = ${projectId}`, []);
  for (const secret of ['x', 'x'.repeat(43)]) {
    const attempt = signInAs(app, 'late', secret);
    if (secret === 'x') await t.rejects(attempt, /auth.invalid_key/);
    else t.match((await attempt).outcome, { status: 401, message: /has expired/ });
  }
});

t.test('a second invitation takes nothing away', async (t) => {
  const projectId = await newProject();
  await personOf('twice', projectId, Role.ADMIN);
  const { outcome } = await signInAs(app, 'twice', (await invite(projectId, Role.VIEWER)).secret);
  t.match(outcome.response, { role: 'ROLE_ADMIN' });
});

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

t.test('people see and end their own sessions, admins those of the project, operators all', async (t) => {
  const [projectId, elsewhere] = [await newProject(), await newProject()];
  const boss = await personOf('sid', projectId, Role.ADMIN);
  const viewer = await personOf('vera', projectId, Role.VIEWER);
  const other = await personOf('otto', elsewhere, Role.ADMIN);
  const { browser: again } = await signInAs(app, 'vera');
  const link = await signedIn(app, { projectId, environment: 1 });
  const { browser: op } = await signInAs(app, account('pia', { groups: ['platform'] }));
  const idOf = async (browser: Browser) => String((await browser.call(getSession, {})).response.id);
  const ids = Object.fromEntries(
    await Promise.all(
      Object.entries({ boss, viewer, other, again, link, op }).map(async ([name, one]) => [
        name,
        await idOf(one),
      ]),
    ),
  ) as Record<string, string>;
  const seen = async (browser: Browser, input = {}) => {
    const { response } = await browser.call(listSessions, input);
    const listed = data(response).map(({ id }) => id);
    return Object.keys(ids).filter((name) => listed.includes(ids[name] as string));
  };
  t.same(await seen(viewer), ['viewer', 'again']);
  t.same(await seen(boss), ['boss', 'viewer', 'again', 'link']);
  t.same(await seen(link), ['boss', 'viewer', 'again', 'link']);
  t.same(await seen(op), ['boss', 'viewer', 'other', 'again', 'link', 'op']);
  t.same(await seen(op, { owner: { case: 'operator', value: true } }), ['op']);
  t.same(await seen(op, { owner: { case: 'projectId', value: elsewhere } }), ['other']);
  t.equal((await boss.call(listSessions, { owner: { case: 'operator', value: true } })).status, 403);
  const end = async (browser: Browser, name: string) =>
    (await browser.call(endSession, { id: ids[name] ?? '' })).response.ended === true;
  t.notOk(await end(viewer, 'boss'));
  t.notOk(await end(boss, 'other'));
  t.notOk(await end(boss, 'op'));
  t.ok(await end(viewer, 'again'));
  t.ok(await end(boss, 'viewer'));
  t.equal((await viewer.call(getSession, {})).status, 401);
  t.same((await boss.call(revokeSessions, {})).response, { sessions: 2 });
  t.equal((await boss.call(getSession, {})).status, 401);
  t.equal((await other.call(getSession, {})).code, 'ok');
  t.match(data((await op.call(listSessions, {})).response)[0], { person: { name: 'pia' }, isOwn: true });
});

t.test('what a person makes is his: in the audit log, and when he is removed', async (t) => {
  const projectId = await newProject();
  const boss = await personOf('bea', projectId, Role.ADMIN);
  const maker = await personOf('max', projectId, Role.ADMIN);
  const make = async (name: string) => {
    const { response } = await maker.call(createApiKey, { projectId, environment: 1, name });
    app.recorder.secrets.add(String(response.secret));
    return response;
  };
  const [key, revoked] = [await make('a'), await make('b')];
  const createdBy = { id: maker.id, name: 'max', email: 'max@example.com' };
  t.match(key, { createdBy });
  await maker.call(ApiKeyService.method.revokeApiKey, { id: String(revoked.id) });
  const rotated = await boss.call(ApiKeyService.method.rotateApiKey, { id: String(key.id) });
  app.recorder.secrets.add(String(rotated.response.secret));
  t.match(rotated.response, { createdBy: { id: boss.id } }, 'who rotates has it');
  const conditions = { repository: 'acme/app' };
  const trust = { projectId, environment: 1, issuer: app.baseUrl, conditions };
  const { response: rule } = await maker.call(TrustRuleService.method.createTrustRule, trust);
  t.match(rule, { createdBy });
  const { response: list } = await boss.call(listApiKeys, { createdBy: maker.id });
  t.same(
    data(list).map(({ id }) => id),
    [revoked.id, key.id],
  );
  const { data: entries } = await admin.ask(AuditService.method.listAuditEntries, { projectId, limit: 2 });
  const actor = { kind: 'AUDIT_ACTOR_KIND_SESSION', id: /^ses_/, person: createdBy };
  t.match(entries, [
    { action: 'AUDIT_ACTION_TRUST_RULE_CREATED', actor },
    { actor: { person: { name: 'bea' } } },
  ]);
  const remove = async (revokeCredentials: boolean) =>
    (await boss.call(removeMember, { personId: maker.id, revokeCredentials })).response;
  const made = { apiKeyIds: [key.id], trustRuleIds: [rule.id] };
  t.same(await remove(false), { removed: true, ...made });
  t.equal((await app.rest('/v1/service/me', { apiKey: String(key.secret) })).status, 200);
  t.same(await remove(true), made, 'also later');
  t.equal((await app.rest('/v1/service/me', { apiKey: String(key.secret) })).status, 401);
  t.match((await boss.call(TrustRuleService.method.getTrustRule, { id: String(rule.id) })).response, {
    removedAt: /./,
  });
  t.same(await remove(true), {}, 'once');
});

t.test('an idempotency key of a person is one of the project', async (t) => {
  const [first, second] = [await newProject(), await newProject()];
  const person = await personOf('idem', first, Role.ADMIN);
  await signInAs(app, 'idem', (await invite(second, Role.ADMIN)).secret);
  const make = (projectId: string) =>
    person.call(
      createApiKey,
      { projectId, environment: 1, name: 'x' },
      { 'attest-project': projectId, 'idempotency-key': 'the-same-key' },
    );
  const made = [await make(first), await make(second)];
  t.same(
    made.map(({ code }) => code),
    ['ok', 'ok'],
  );
  for (const { response } of made) app.recorder.secrets.add(String(response.secret));
  const { response } = await person.call(listApiKeys, {}, { 'attest-project': second });
  t.ok(data(response).every(({ projectId }) => projectId === second));
});

t.test('values out of bounds are rejected with a pointer', async (t) => {
  const projectId = await newProject();
  const rule = { projectId, role: Role.VIEWER };
  const twenty = Array.from({ length: 20 }, (_, i) => ({ ...rule, conditions: { groups: `g${i}` } }));
  const table: [method: DescMethodUnary, input: Record<string, unknown>, path: string][] = [
    [createInvitation, { projectId, role: Role.UNSPECIFIED }, '/role'],
    [createInvitation, { projectId, role: 9 as Role }, '/role'],
    [createInvitation, { ...rule, email: 'nobody' }, '/email'],
    [createInvitation, { ...rule, email: `${'x'.repeat(320)}@example.com` }, '/email'],
    [createInvitation, { ...rule, lifetime: { seconds: 59n } }, '/lifetime'],
    [createInvitation, { ...rule, lifetime: { seconds: 2_592_001n } }, '/lifetime'],
    [createRoleRule, { ...rule, conditions: {} }, '/conditions'],
    [createRoleRule, { ...rule, conditions: { groups: '*' } }, '/conditions'],
    [createRoleRule, { ...rule, conditions: { iss: 'x' } }, '/conditions/iss'],
    [createRoleRule, { ...rule, conditions: { email_verified: 'true' } }, '/conditions/email_verified'],
    [createRoleRule, { ...rule, conditions: { groups: '' } }, '/conditions/groups'],
    [listPeople, { projectId, limit: 201 }, '/limit'],
    [removeMember, { projectId }, '/person_id'],
  ];
  for (const [method, input, path] of table) {
    const outcome = await admin.call(method, input);
    t.equal(outcome.code, 'request.invalid', path);
    t.match(outcome.details, { errors: [{ path }] }, `${method.name} ${path}`);
  }
  await Promise.all(twenty.map((input) => admin.ask(createRoleRule, input)));
  const more = await admin.call(createRoleRule, { ...rule, conditions: { groups: 'more' } });
  t.match(more.details, { errors: [{ path: '/project_id', message: /^has 20 role rules/ }] });
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
