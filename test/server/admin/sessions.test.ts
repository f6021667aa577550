/** Sessions of the dashboard: what they reach, how they begin and end, and who cannot use them. */
import {
  type DescField,
  type DescMethodUnary,
  getOption,
  type JsonObject,
  type MessageInitShape,
} from '@bufbuild/protobuf';
import t from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import {
  type ListSessionsRequestSchema,
  SessionService,
} from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { TrustRuleService } from '../../../gen/attestation/admin/v1/trust_rules_pb.js';
import {
  Access,
  Resource,
  Role,
  refers_to,
  rules,
  SessionAccess,
} from '../../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { pruneSessions } from '../../../src/server/admin/store/sessions.js';
import { readSessionCookie, sessionCookie } from '../../../src/server/core/http/session-cookie.js';
import { pruneSignInAttempts } from '../../../src/server/limits/sign-in-attempts.js';
import { startApp } from '../../support/app.js';
import { ADMIN_METHODS, adminOf } from '../../support/calling/admin.js';
import { keyedMethods, rpcName } from '../../support/calling/rpcs.js';
import { type Browser, newBrowser, newLink, signedIn } from '../../support/calling/sessions.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { NOTHING, sampleOf } from '../rpc/samples.js';

const app = await startApp(t, { apis: 2, env: { TRUSTED_PROXIES: 'none' } });
const admin = adminOf(app);
/** Limits that a session may give. */
const limits = { perSecond: 60, perHour: 10_000, perDay: 100_000, readsPerSecond: 600 };
const [one, two] = [await newKey(app, { limits }), await newKey(app, { limits })];
const sessionMethods = SessionService.methods as DescMethodUnary[];
const methods = [...(await keyedMethods()), ...new Set([...ADMIN_METHODS, ...sessionMethods])].filter(
  (method) => getOption(method, rules).access !== Access.PUBLIC,
);
const { getSession, signOut, createSignInLink, revokeSessions, listSessions, endSession } =
  SessionService.method;
const { updateApiKey, listApiKeys } = ApiKeyService.method;
const byToken = { credential: { case: 'adminToken' as const, value: admin.token } };
const byLink = async (projectId: string) => ({
  credential: { case: 'link' as const, value: await newLink(app, projectId) },
});

type OpenSession = JsonObject & { id: string; isOwn?: boolean };

async function openSessions(of: MessageInitShape<typeof ListSessionsRequestSchema>): Promise<OpenSession[]> {
  return ((await admin.ask(listSessions, of)).data ?? []) as OpenSession[];
}

async function idOf(browser: Browser): Promise<string> {
  return String((await browser.call(getSession, {})).response.id);
}

function sessionOf(method: DescMethodUnary): SessionAccess {
  return getOption(method, rules).session;
}

function inputOf(method: DescMethodUnary): Record<string, unknown> {
  return method.parent.file.proto.package === 'attestation.v1' ? sampleOf(method, NOTHING) : {};
}

t.test('every RPC allows the sessions that its option names, and rejects the others', async (t) => {
  const operator = newBrowser(app, { 'attest-project': one.projectId });
  t.equal((await operator.signIn(byToken)).code, 'ok');
  const tenant = await signedIn(app, one);
  const stranger = newBrowser(app);
  const ends = ['SignOut', 'RevokeSessions'];
  for (const method of methods.filter(({ name }) => !ends.includes(name))) {
    const level = sessionOf(method);
    const refused = (code: string) => /^auth\./.test(code);
    for (const [browser, isAllowed] of [
      [operator, level !== SessionAccess.UNSPECIFIED],
      [tenant, level === SessionAccess.PROJECT || level === SessionAccess.ANY],
    ] as const) {
      const { code, status } = await browser.call(method, inputOf(method));
      t.equal(refused(code), !isAllowed, `${rpcName(method)}: ${code}`);
      if (!isAllowed) t.match({ code, status }, { code: 'auth.insufficient_scope', status: 403 });
    }
    t.equal((await stranger.call(method, inputOf(method))).status, 401, rpcName(method));
  }
});

const TRUST = { environment: Environment.LIVE, issuer: app.baseUrl, conditions: { sub: 'x' } };
/** What creations have to say besides their project. */
const NEW: Record<string, object> = {
  CreateApiKey: { environment: Environment.LIVE, name: 'x' },
  CreateTrustRule: TRUST,
  CreateInvitation: { role: Role.VIEWER },
  CreateRoleRule: { role: Role.VIEWER, conditions: { groups: 'x' } },
  DeleteInvitation: { id: 'inv_none' },
  DeleteRoleRule: { id: 'rol_none' },
  RemoveMember: { personId: 'per_none' },
  SetRole: { personId: 'per_none', role: Role.VIEWER },
};
/** What ends the session, or says `request.invalid` of a person who is nobody. */
const APART = ['RevokeApiKey', 'RevokeSessions', 'SetRole'];

/** A request with a value in a field, which may be of a oneof. */
function withField({ localName, oneof }: DescField, value: string): object {
  return oneof === undefined ? { [localName]: value } : { [oneof.localName]: { case: localName, value } };
}

async function newRule(projectId: string): Promise<string> {
  const made = await admin.ask(TrustRuleService.method.createTrustRule, { ...TRUST, projectId });
  return String(made.id);
}

t.test("a project's session reaches nothing of another project on any admin RPC", async (t) => {
  const tenant = await signedIn(app, one);
  const confined = ADMIN_METHODS.filter((method) => sessionOf(method) === SessionAccess.PROJECT);
  t.ok(confined.length > 5);
  const named = new Map([
    [Resource.PROJECT, [one.projectId, two.projectId, /project\.not_found/]],
    [Resource.API_KEY, [one.id, two.id, /api_key\.not_found/]],
    [
      Resource.TRUST_RULE,
      [await newRule(one.projectId), await newRule(two.projectId), /trust_rule\.not_found/],
    ],
  ] as const);
  for (const method of confined) {
    const more = NEW[method.name] ?? {};
    const references = method.input.fields.flatMap((field) => {
      const found = named.get(getOption(field, refers_to) as never);
      return found === undefined ? [] : [[field, ...found] as const];
    });
    t.ok(references.length > 0 || method.name === 'EndSession', rpcName(method));
    for (const [field, own, other, notFound] of references) {
      const outcome = await tenant.call(method, { ...more, ...withField(field, other) });
      t.match(outcome.code, notFound, `${rpcName(method)} of another's ${field.name}`);
      t.notMatch(JSON.stringify(outcome), two.projectId);
      if (!APART.includes(method.name)) {
        const { code } = await tenant.call(method, { ...more, ...withField(field, own) });
        t.equal(code, 'ok', rpcName(method));
      }
    }
  }
  const { response } = await tenant.call(listApiKeys, {});
  const listed = (response.data as { projectId: string }[]).map(({ projectId }) => projectId);
  t.same([...new Set(listed)], [one.projectId], 'what names no project is about its own');
  const other = { 'attest-project': two.projectId };
  const mine = await tenant.call(AttestationService.method.listAttestations, {}, other);
  t.equal(mine.code, 'ok');
  t.notMatch(JSON.stringify(mine), two.projectId, 'Attest-Project is for the operator only');
});

t.test('calls forged outside the page are rejected', async (t) => {
  const tenant = await signedIn(app, one);
  const forged = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': undefined, origin: 'https://evil.example' },
    { 'sec-fetch-site': undefined, origin: 'null' },
    { 'sec-fetch-site': undefined, origin: undefined },
    { 'connect-protocol-version': undefined },
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/proto' },
    { 'content-type': 'application/x-www-form-urlencoded' },
  ];
  for (const headers of forged) {
    const what = JSON.stringify(headers);
    for (const method of [getSession, listApiKeys, signOut] as DescMethodUnary[]) {
      t.not((await tenant.call(method, {}, headers)).status, 200, what);
    }
    const login = await newBrowser(app).signIn(byToken, headers);
    t.not(login.status, 200, `signing in with ${what}`);
    t.equal(login.headers['set-cookie'], undefined);
  }
  t.equal((await tenant.call(getSession, {}, { 'sec-fetch-site': undefined })).code, 'ok', 'by Origin alone');
  for (const path of ['/v1/attestations', '/v1/batches']) {
    const { status } = await app.rest(path, { headers: { cookie: tenant.cookie } });
    t.not(status, 200, 'REST takes no cookie of a foreign page');
  }
});

t.test('signing in makes a new session, and ends the one before', async (t) => {
  const browser = newBrowser(app);
  browser.cookie = `attest-session=${'x'.repeat(43)}`;
  const fixed = browser.cookie;
  const { headers, response } = await browser.signIn(await byLink(one.projectId));
  t.match(response, { projectId: one.projectId, projectName: 'a test' });
  t.match(
    headers['set-cookie'],
    /^attest-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
  );
  t.not(browser.cookie, fixed);
  const first = { ...browser };
  t.equal((await browser.signIn(byToken)).code, 'ok');
  t.not(browser.cookie, first.cookie);
  t.equal((await browser.call(getSession, {}, { cookie: first.cookie })).status, 401, 'the first has ended');
  t.equal((await browser.call(getSession, {}, { cookie: fixed })).status, 401);
  t.equal((await browser.call(getSession, {}, { cookie: `${browser.cookie}; ${fixed}` })).status, 401, 'two');
  t.equal((await browser.call(signOut, {})).code, 'ok');
  t.equal((await browser.call(getSession, {})).status, 401, 'after signing out');
});

t.test('a link works once, for a while, for its project', async (t) => {
  const link = await byLink(one.projectId);
  const outcomes = await Promise.all([1, 2, 3].map(() => newBrowser(app).signIn(link)));
  t.same(outcomes.map(({ status }) => status).sort(), [200, 401, 401]);
  const late = await byLink(one.projectId);
  await app.pool`UPDATE sign_in_link SET expires_at = now()`;
  t.match(await newBrowser(app).signIn(late), {
    code: 'auth.invalid_key',
    message: /used already or has expired/,
  });
  t.equal((await admin.call(createSignInLink, { projectId: 'prj_none' })).code, 'project.not_found');
});

t.test('a session ends: by its time, without use, when it is revoked', async (t) => {
  const columns = ['expires_at = now()', "last_used_at = now() - interval '61 minutes'"];
  for (const column of columns) {
    const tenant = await signedIn(app, one);
    t.equal((await tenant.call(getSession, {})).code, 'ok');
    await app.pool`UPDATE session SET ${app.pool.unsafe(column)}`;
    t.equal((await tenant.call(getSession, {})).status, 401, column);
  }
  await pruneSessions(app.pool);
  t.equal((await app.pool`SELECT FROM session`).length, 0, 'and is deleted');
  const [tenant, operator] = [await signedIn(app, one), newBrowser(app)];
  await operator.signIn(byToken);
  const unused = await byLink(one.projectId);
  t.match(await admin.ask(revokeSessions, { projectId: one.projectId }), { sessions: 1, links: 1 });
  t.equal((await tenant.call(getSession, {})).status, 401);
  t.equal((await newBrowser(app).signIn(unused)).status, 401);
  t.equal((await operator.call(getSession, {})).code, 'ok', "the operator's is not the project's");
  t.match(await admin.ask(revokeSessions, {}), { sessions: 1 });
  t.equal((await operator.call(getSession, {})).status, 401);
});

t.test('sessions are listed by their owner, and ended one by one', async (t) => {
  const [mine, other, operator] = [await newKey(app), await newKey(app), newBrowser(app)];
  await operator.signIn(byToken);
  const [first, second] = [await signedIn(app, mine), await signedIn(app, mine)];
  await signedIn(app, other);
  const ofProject = { owner: { case: 'projectId' as const, value: mine.projectId } };
  const ofOperator = { owner: { case: 'operator' as const, value: true } };
  const [newest, oldest] = await openSessions(ofProject);
  t.match(newest, { projectId: mine.projectId, projectName: 'a test', linkId: /^lnk_/, lastUsedAt: /T/ });
  t.same([newest?.id, oldest?.id], [await idOf(second), await idOf(first)], 'the newest first');
  t.same((await openSessions(ofOperator)).at(0)?.id, await idOf(operator));
  t.ok((await openSessions({})).length > 3, 'all, without an owner');
  const own = (await operator.call(listSessions, ofOperator)).response.data as OpenSession[];
  t.same(
    own.filter(({ isOwn }) => isOwn).map(({ id }) => id),
    [await idOf(operator)],
    'which is its own',
  );
  const page = await admin.ask(listSessions, { ...ofProject, limit: 1 });
  const cursor = String(page.nextCursor);
  t.match(await admin.ask(listSessions, { ...ofProject, cursor }), { data: [{ id: oldest?.id }] });
  t.equal((await admin.call(listSessions, { ...ofOperator, cursor })).code, 'cursor.invalid');
  const unknown = { owner: { case: 'projectId' as const, value: 'prj_none' } };
  t.equal((await admin.call(listSessions, unknown)).code, 'project.not_found');

  const id = String(oldest?.id);
  t.same(await admin.ask(endSession, { id }), { ended: true });
  t.equal((await first.call(getSession, {})).status, 401, 'it has ended');
  t.equal((await second.call(getSession, {})).code, 'ok', 'the other has not');
  t.same(await admin.ask(endSession, { id }), {}, 'it ends once');
  t.match(await openSessions(ofProject), [{ id: newest?.id }]);
  const { data } = await admin.ask(AuditService.method.listAuditEntries, { resourceId: id });
  const revoked = { action: 'AUDIT_ACTION_SESSION_REVOKED', projectId: mine.projectId };
  t.match(data, [{ ...revoked, actor: { kind: 'AUDIT_ACTOR_KIND_ADMIN' } }, { action: /STARTED/ }]);
  await app.pool`UPDATE session SET last_used_at = now() - interval '61 minutes' WHERE project_id = ${mine.projectId}`;
  t.same(await openSessions(ofProject), [], 'one that has ended is not listed');
  t.same(await admin.ask(endSession, { id: String(newest?.id) }), {}, 'nor ended again');
});

t.test('the audit log has each sign-in and each change by a session', async (t) => {
  const key = await newKey(app);
  const tenant = await signedIn(app, key);
  const { response } = await tenant.call(getSession, {});
  await tenant.call(updateApiKey, { id: key.id, name: 'renamed' });
  await tenant.call(signOut, {});
  const { data } = await admin.ask(AuditService.method.listAuditEntries, { projectId: key.projectId });
  const actor = { kind: 'AUDIT_ACTOR_KIND_SESSION', id: response.id };
  t.match(data, [
    { action: 'AUDIT_ACTION_SESSION_ENDED', actor },
    { action: 'AUDIT_ACTION_API_KEY_CHANGED', actor, resourceId: key.id },
    { action: 'AUDIT_ACTION_SESSION_STARTED', actor, detail: { by: 'link' } },
    { action: 'AUDIT_ACTION_SIGN_IN_LINK_CREATED', actor: { kind: 'AUDIT_ACTOR_KIND_ADMIN' } },
  ]);
});

t.test('the cookie is for https only where browsers come by https', async (t) => {
  const cookie = sessionCookie('x', { isSecure: true, maxAgeSeconds: 60 });
  t.equal(cookie, '__Host-attest-session=x; Path=/; HttpOnly; SameSite=Strict; Max-Age=60; Secure');
  t.equal(readSessionCookie('a=b; __Host-attest-session=x', true), 'x');
  t.equal(readSessionCookie('attest-session=x', true), undefined);
});

t.test('ten failures a minute close the sign-in to an address, in every process', async (t) => {
  const wrong = { credential: { case: 'link' as const, value: 'no-such-link' } };
  const [, second = ''] = app.baseUrls;
  await app.pool`DELETE FROM sign_in_attempt`;
  t.equal((await newBrowser(app).signIn(byToken)).code, 'ok');
  const attempts = Array.from({ length: 12 }, (_, i) =>
    newBrowser(app, {}, i % 2 === 0 ? app.baseUrl : second).signIn(wrong),
  );
  const codes = (await Promise.all(attempts)).map(({ code }) => code).sort();
  const refused = [...Array(10).fill('auth.invalid_key'), ...Array(2).fill('rate_limit.exceeded')];
  t.same(codes, refused, 'as many at once, and a success counts for nothing');
  for (const baseUrl of app.baseUrls) {
    const closed = await newBrowser(app, {}, baseUrl).signIn(byToken);
    t.match(closed, { code: 'rate_limit.exceeded', headers: { 'retry-after': /^\d+$/ } });
  }
  t.equal((await admin.call(ProjectService.method.listProjects, {})).code, 'ok', 'the admin API goes on');
  await app.pool`UPDATE sign_in_attempt SET until = clock_timestamp() - interval '1 s'`;
  await pruneSignInAttempts(app.pool);
  t.same(await app.pool`SELECT FROM sign_in_attempt`, [], 'nothing is left of it');
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
