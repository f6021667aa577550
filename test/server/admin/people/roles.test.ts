/** Every role and every RPC that a session may call: what each may, and may not. */
import { type DescMethodUnary, getOption } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { Access, Role, rules, SessionAccess } from '../../../../gen/attestation/options/v1/options_pb.js';
import { startApp } from '../../../support/app.js';
import { ADMIN_METHODS, adminOf } from '../../../support/calling/admin.js';
import { keyedMethods, rpcName } from '../../../support/calling/rpcs.js';
import { type Browser, newBrowser, signedIn } from '../../../support/calling/sessions.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { signInAs, startLoginProvider } from '../../../support/identities/login-provider.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { NOTHING, sampleOf } from '../../rpc/samples.js';

const provider = await startLoginProvider(t);
const app = await startApp(t, {
  isWithoutWorker: true,
  env: { ...provider.env, OIDC_OPERATORS: 'groups=platform' },
});
provider.register(app);
const admin = adminOf(app);
const [one, two] = [await newKey(app), await newKey(app)];
const { createRoleRule } = PersonService.method;
const sessionMethods = SessionService.methods as DescMethodUnary[];
const methods = [...(await keyedMethods()), ...new Set([...ADMIN_METHODS, ...sessionMethods])].filter(
  (method) => getOption(method, rules).access !== Access.PUBLIC,
);
const ofProjects = methods.filter((method) => getOption(method, rules).session === SessionAccess.PROJECT);

for (const [group, role] of [
  ['viewers', Role.VIEWER],
  ['members', Role.MEMBER],
  ['admins', Role.ADMIN],
] as const) {
  await admin.ask(createRoleRule, { projectId: one.projectId, role, conditions: { groups: group } });
  provider.accounts.set(group, { name: group, groups: [group] });
}
await admin.ask(createRoleRule, {
  projectId: two.projectId,
  role: Role.ADMIN,
  conditions: { groups: 'elsewhere' },
});
provider.accounts.set('elsewhere', { name: 'elsewhere', groups: ['elsewhere'] });
provider.accounts.set('both', { name: 'both', groups: ['elsewhere', 'viewers'] });
provider.accounts.set('platform', { name: 'platform', groups: ['platform'] });

/** Signs in, and acts for the project. */
async function personOf(account: string, projectId: string | null = one.projectId): Promise<Browser> {
  const { browser, outcome } = await signInAs(app, account);
  if (outcome.code !== 'ok') throw new Error(`${account}: ${outcome.code} ${outcome.message}`);
  return newBrowser(app, { cookie: browser.cookie, 'attest-project': projectId ?? undefined });
}

function inputOf(method: DescMethodUnary): Record<string, unknown> {
  return method.parent.file.proto.package === 'attestation.v1' ? sampleOf(method, NOTHING) : {};
}

t.test('each role calls the RPCs that are at most its own, and gets 403 from the others', async (t) => {
  const callers: [what: string, browser: Browser, role: Role][] = [
    ['a viewer', await personOf('viewers'), Role.VIEWER],
    ['a member', await personOf('members'), Role.MEMBER],
    ['an admin', await personOf('admins'), Role.ADMIN],
    ['a link', await signedIn(app, one), Role.ADMIN],
    ['an operator', await personOf('platform'), Role.OPERATOR],
    ['a viewer who is an admin elsewhere', await personOf('both'), Role.VIEWER],
  ];
  for (const method of methods.filter(({ name }) => !['SignOut', 'RevokeSessions'].includes(name))) {
    const { session, role: least } = getOption(method, rules);
    for (const [what, browser, role] of callers) {
      const isAllowed =
        session === SessionAccess.ANY ||
        (session === SessionAccess.ADMIN && role === Role.OPERATOR) ||
        (session === SessionAccess.PROJECT && role >= least);
      const { code, status } = await browser.call(method, inputOf(method));
      t.equal(/^auth\./.test(code), !isAllowed, `${rpcName(method)} by ${what}: ${code}`);
      if (!isAllowed) t.match({ code, status }, { code: 'auth.insufficient_scope', status: 403 });
    }
  }
});

t.test('without a role in the project that is named, nothing of it can be called', async (t) => {
  for (const [what, browser] of [
    ['an admin elsewhere', await personOf('elsewhere')],
    ['nobody named, of two', await personOf('both', null)],
    ['a project that is none', await personOf('viewers', 'prj_01JX5WQ3ZZZZZZZZZZZZZZZZZZ')],
  ] as const) {
    for (const method of ofProjects) {
      const outcome = await browser.call(method, inputOf(method));
      t.match(outcome, { status: 404, code: 'project.not_found' }, `${rpcName(method)} by ${what}`);
    }
    t.equal((await browser.call(SessionService.method.getSession, {})).code, 'ok');
  }
});

t.test('a person reaches nothing of another project by naming it in a request', async (t) => {
  const browser = await personOf('both', two.projectId);
  for (const method of ADMIN_METHODS) {
    if (getOption(method, rules).session !== SessionAccess.PROJECT) continue;
    if (!method.input.fields.some(({ localName, oneof }) => localName === 'projectId' && oneof === undefined))
      continue;
    const more = {
      role: Role.VIEWER,
      personId: 'x',
      id: 'x',
      name: 'x',
      environment: 1,
      conditions: { a: 'b' },
      issuer: 'https://a.example',
    };
    const known = Object.fromEntries(
      Object.entries(more).filter(([name]) => method.input.field[name] !== undefined),
    );
    const outcome = await browser.call(method, { ...known, projectId: one.projectId });
    t.equal(outcome.code, 'project.not_found', rpcName(method));
  }
});

t.test('a viewer changes nothing, and only an admin says who has access', async (t) => {
  const names = (wanted: Role) =>
    ofProjects.filter((method) => getOption(method, rules).role === wanted).map(rpcName);
  const isRead = ({ idempotency }: DescMethodUnary) =>
    idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const changing = ofProjects.filter((method) => !isRead(method)).map(rpcName);
  t.same(
    names(Role.VIEWER).filter((name) => changing.includes(name)),
    ['SessionService/EndSession'],
    'but his own session',
  );
  t.same(names(Role.ADMIN).sort(), [
    'ApiKeyService/CreateApiKey',
    'ApiKeyService/RevokeApiKey',
    'ApiKeyService/RotateApiKey',
    'ApiKeyService/UpdateApiKey',
    'AttestationService/DeleteAttestation',
    'PersonService/CreateInvitation',
    'PersonService/CreateRoleRule',
    'PersonService/DeleteInvitation',
    'PersonService/DeleteRoleRule',
    'PersonService/ListInvitations',
    'PersonService/RemoveMember',
    'PersonService/SetRole',
    'SessionService/RevokeSessions',
    'TrustRuleService/CreateTrustRule',
    'TrustRuleService/RemoveTrustRule',
  ]);
  const submits = methods.filter(({ name }) => /^(Batch)?Create.*Attestation|RegisterStatement/.test(name));
  t.ok(submits.length > 2);
  for (const method of submits) t.equal(getOption(method, rules).session, SessionAccess.UNSPECIFIED);
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
