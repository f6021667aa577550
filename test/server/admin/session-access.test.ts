/** What sessions of the dashboard reach, and which calls with their cookie are rejected. */
import { type DescField, type DescMethodUnary, getOption } from '@bufbuild/protobuf';
import t from 'tap';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
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
import { ADMIN_METHODS } from '../../support/calling/admin.js';
import { keyedMethods, rpcName } from '../../support/calling/rpcs.js';
import { newBrowser, signedIn } from '../../support/calling/sessions.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { NOTHING, sampleOf } from '../rpc/samples.js';
import { setSessionScene } from './session-scene.js';

const { app, admin, byToken } = await setSessionScene(t);
/** Limits that a session may give. */
const limits = { perSecond: 60, perHour: 10_000, perDay: 100_000, readsPerSecond: 600 };
const [one, two] = [await newKey(app, { limits }), await newKey(app, { limits })];
const sessionMethods = SessionService.methods as DescMethodUnary[];
const methods = [...(await keyedMethods()), ...new Set([...ADMIN_METHODS, ...sessionMethods])].filter(
  (method) => getOption(method, rules).access !== Access.PUBLIC,
);
const { getSession, signOut } = SessionService.method;
const { listApiKeys } = ApiKeyService.method;

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

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
