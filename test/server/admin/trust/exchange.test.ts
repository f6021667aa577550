/** Tokens of CI jobs: which are exchanged for a key, and which are not, with the reason for the operator. */
import { createHmac } from 'node:crypto';
import { exportSPKI, importJWK, type JWTPayload } from 'jose';
import t, { type Test } from 'tap';
import { TrustRuleService } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { githubClaims, gitlabClaims, startIssuer } from '../../../support/identities/issuer.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';

const app = await startApp(t);
const admin = adminOf(app);
const issuer = await startIssuer(t);
const { projectId } = await newKey(app);
const { createTrustRule, removeTrustRule } = TrustRuleService.method;

type Conditions = Record<string, string>;

/** A rule of the project until the test ends. */
async function trust(t: Test, conditions: Conditions, more: object = {}): Promise<string> {
  const request = { projectId, environment: Environment.LIVE, issuer: issuer.url, conditions, ...more };
  const { id } = await admin.ask(createTrustRule, request);
  t.teardown(() => admin.ask(removeTrustRule, { id: String(id) }));
  return String(id);
}

async function exchange(token: string, more: object = {}) {
  const { status, json, headers } = await app.rest('/v1/tokens', { body: { token, ...more } });
  if (typeof json.secret === 'string') app.recorder.secrets.add(json.secret);
  const { error } = json as { error?: { code: string; request_id: string; message: string } };
  return { status, json, headers, code: error?.code, requestId: error?.request_id, message: error?.message };
}

const github = (more: JWTPayload = {}) => githubClaims(issuer.url, app.baseUrl, more);

/** Asserts that a token is not trusted, and that the operator's log says so. */
async function notTrusted(t: Test, what: string, token: string, reason: RegExp): Promise<void> {
  const { status, code, message = '', requestId } = await exchange(token);
  t.same([status, code], [403, 'token.not_trusted'], what);
  t.notMatch(message, reason, `${what}: the caller does not hear the reason`);
  const lines = app.recorder.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const logged = lines.find((line) => line.request_id === requestId && line.reason !== undefined);
  t.match(logged, { reason }, `${what}: ${JSON.stringify(logged)}`);
}

t.test('a job of GitHub gets a key that names it', async (t) => {
  const id = await trust(
    t,
    { repository: 'acme/app', ref: 'refs/heads/main' },
    { recordedClaims: ['repository', 'ref', 'sha', 'workflow_ref', 'run_id', 'none'] },
  );
  const { status, json } = await exchange(await issuer.sign(github()));
  t.equal(status, 201);
  t.match(json, {
    trust_rule_id: id,
    project_id: projectId,
    environment: 'live',
    scopes: ['attestations:read', 'attestations:write'],
    identity: {
      issuer: issuer.url,
      subject: 'repo:acme/app:ref:refs/heads/main',
      claims: {
        repository: 'acme/app',
        ref: 'refs/heads/main',
        sha: '6113728f27ae82c7b1a177c8d03f9e96e0adf246',
        workflow_ref: 'acme/app/.github/workflows/ci.yml@refs/heads/main',
        run_id: '9302176411',
      },
    },
  });
  const lifetimeMs = Date.parse(String(json.expires_at)) - Date.now();
  t.ok(lifetimeMs > 14 * 60_000 && lifetimeMs <= 15 * 60_000, `${lifetimeMs} ms`);
});

t.test('a job of GitLab gets one as well, for each of its commands', async (t) => {
  const conditions = { project_path: 'acme/*', ref_protected: 'true', runner_id: '1' };
  await trust(t, conditions, { reusableTokens: true });
  const token = await issuer.sign(gitlabClaims(issuer.url, app.baseUrl));
  const [first, second] = [await exchange(token), await exchange(token)];
  t.same([first.status, second.status], [201, 201]);
  t.not(first.json.id, second.json.id);
  t.match(first.json, { identity: { claims: { project_path: 'acme/app', runner_id: '1' } } });
});

t.test('each of the asymmetric algorithms is verified', async (t) => {
  await trust(t, { repository: 'acme/app' });
  for (const algorithm of ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA']) {
    const of = await startIssuer(t, algorithm);
    await trust(t, { repository: 'acme/app' }, { issuer: of.url });
    const token = await of.sign(githubClaims(of.url, app.baseUrl));
    t.equal((await exchange(token)).status, 201, algorithm);
  }
});

t.test('tokens that are not what they should be are not trusted', async (t) => {
  await trust(t, { repository: 'acme/app' });
  const now = Math.floor(Date.now() / 1000);
  const good = await issuer.sign(github());
  const [header = '', payload = ''] = good.split('.');
  const encode = (text: string) => Buffer.from(text).toString('base64url');
  const signed = async (changes: JWTPayload, reason: RegExp, what: string) =>
    notTrusted(t, what, await issuer.sign(github(changes)), reason);
  await signed({ exp: now - 31 }, /"exp" claim/, 'expired');
  await signed({ nbf: now + 60 }, /"nbf" claim/, 'not yet valid');
  await signed({ iat: now + 60 }, /iat is in the future/, 'issued in the future');
  await signed({ exp: undefined }, /"exp" claim/, 'without an end');
  await signed({ sub: undefined }, /"sub" claim/, 'without a subject');
  await signed({ aud: 'https://elsewhere.example.com' }, /aud is .*, not http/, 'for another audience');
  await signed({ aud: [`${app.baseUrl}/x`] }, /aud is .*, not http/, 'for a longer audience');
  await signed({ iss: `${issuer.url}/` }, /no trust rule names the issuer/, 'by another issuer');
  await signed({ iss: undefined }, /iss is not a text/, 'by no issuer');
  const unsigned = `${encode('{"alg":"none"}')}.${payload}.`;
  await notTrusted(t, 'algorithm none', unsigned, /"alg"/);
  const { kid = '', jwk } = issuer.keys[0] ?? {};
  const pem = await exportSPKI((await importJWK(jwk ?? {}, 'RS256', { extractable: true })) as never);
  const byPublicKey = `${encode(JSON.stringify({ alg: 'HS256', kid }))}.${payload}`;
  const mac = createHmac('sha256', pem).update(byPublicKey).digest('base64url');
  await notTrusted(t, 'HMAC by the public key', `${byPublicKey}.${mac}`, /"alg"/);
  const other = await issuer.newKey();
  await notTrusted(t, 'unknown key', await issuer.sign(github(), {}, other), /no applicable key/);
  const posing = await issuer.sign(github(), { kid }, other);
  await notTrusted(t, 'another key under its id', posing, /signature verification failed/);
  const swapped = `${header}.${encode(JSON.stringify(github({ repository: 'acme/app2' })))}.${good.split('.')[2]}`;
  await notTrusted(t, 'other claims', swapped, /signature verification failed/);
  const twice = encode(`{"repository":"evil/app",${JSON.stringify(github()).slice(1)}`);
  await notTrusted(t, 'a claim twice', `${header}.${twice}.AA`, /payload cannot be read/);
  await notTrusted(
    t,
    'a header twice',
    `${encode('{"alg":"RS256","alg":"none"}')}.${payload}.AA`,
    /header cannot/,
  );
  await notTrusted(t, 'a payload that is a list', `${header}.${encode('[]')}.AA`, /not a JSON object/);
  await notTrusted(t, 'a payload cut off', `${header}.${payload.slice(0, 100)}.AA`, /payload cannot be read/);
  assertNoLeaks(t, app.recorder);
});

t.test('what cannot be a token is a wrong request', async (t) => {
  const send = async (token: string) => {
    const { status, code } = await exchange(token);
    return [status, code];
  };
  t.same(await send('a'.repeat(16_385)), [400, 'request.invalid']);
  t.same(await send(`a.b.${'c'.repeat(1024 * 1024)}`), [413, 'request.too_large']);
  t.same(await send('svc_live_0'), [400, 'request.invalid']);
  t.same(await send(''), [400, 'request.invalid']);
  t.same((await app.rest('/v1/tokens', { body: {} })).status, 400);
});

t.test('a condition is the whole of a claim, and only * matches other characters', async (t) => {
  const judge = async (conditions: Conditions, claims: JWTPayload) => {
    const id = await trust(t, conditions);
    const { status } = await exchange(await issuer.sign(github(claims)));
    await admin.ask(removeTrustRule, { id });
    return status === 201;
  };
  const table: [string, Conditions, JWTPayload, boolean][] = [
    ['exactly', { repository: 'acme/app' }, {}, true],
    ['a prefix', { repository: 'acme/app' }, { repository: 'acme/app-evil' }, false],
    ['a suffix', { repository: 'acme/app' }, { repository: 'evil/acme/app' }, false],
    ['another case', { repository: 'acme/app' }, { repository: 'Acme/app' }, false],
    ['an owner', { repository: 'acme/*' }, { repository: 'acme/other' }, true],
    ['an owner with a longer name', { repository: 'acme/*' }, { repository: 'acme-evil/app' }, false],
    ['a star in the claim', { repository: 'acme/app' }, { repository: 'acme/*' }, false],
    ['a dot is a dot', { repository: 'acme/a.p' }, {}, false],
    ['a line more', { repository: 'acme/app' }, { repository: 'acme/app\n' }, false],
    ['with a slash', { ref: 'refs/heads/release/*' }, { ref: 'refs/heads/release/1/2' }, true],
    ['one of two', { repository: 'acme/app', ref: 'refs/heads/main' }, { ref: 'refs/heads/x' }, false],
    ['no such claim', { repository: 'acme/app', nothing: '*' }, {}, false],
    ['a member of every object', { constructor: '*', repository: 'acme/app' }, {}, false],
    ['a list', { groups: 'acme*' }, { groups: ['acme'] }, false],
    ['an object', { repo: '*acme*' }, { repo: { name: 'acme' } }, false],
    ['null', { repo: 'null' }, { repo: null }, false],
    ['true', { admin: 'true' }, { admin: true }, true],
    ['a number', { id: '74' }, { id: 74 }, true],
    ['a number in another form', { id: '74.0' }, { id: 74 }, false],
  ];
  for (const [what, conditions, claims, isTrusted] of table)
    t.equal(await judge(conditions, claims), isTrusted, what);
});

t.test('a token with an id is exchanged once; what was lost is asked for again', async (t) => {
  await trust(t, { repository: 'acme/app' });
  const claims = github();
  const token = await issuer.sign(claims);
  const first = await exchange(token);
  const again = await exchange(token);
  t.equal(again.json.id, first.json.id);
  const me = async (secret: unknown) => (await app.rest('/v1/service/me', { apiKey: String(secret) })).status;
  t.same([await me(first.json.secret), await me(again.json.secret)], [401, 200], 'it never has two keys');
  const resigned = await issuer.sign({ ...claims, exp: Number(claims.exp) + 1 });
  t.equal((await exchange(resigned)).json.id, first.json.id, 'its id tells, not its bytes');
  await app.pool`UPDATE exchanged_token SET exchanged_at = clock_timestamp() - interval '121 seconds'`;
  await notTrusted(t, 'replayed', token, /was exchanged before, for key_/);
  t.equal((await exchange(await issuer.sign({ ...claims, jti: undefined }))).status, 201, 'without an id');
  await trust(t, { repository: 'acme/app' }, { environment: Environment.TEST });
  const both = await issuer.sign(github());
  t.equal((await exchange(both, { environment: 'test' })).status, 201);
  t.equal((await exchange(both, { environment: 'live' })).code, 'token.not_trusted', 'for another rule');
});

t.test('several rules: project and environment choose', async (t) => {
  const { projectId: other } = await newKey(app);
  const token = () => issuer.sign(github());
  const first = await trust(t, { repository: 'acme/*' });
  await trust(t, { repository: 'acme/app' });
  t.equal(
    (await exchange(await token())).json.trust_rule_id,
    first,
    'the oldest of those that give the same',
  );
  const test = await trust(t, { repository: 'acme/app' }, { environment: Environment.TEST });
  t.match((await exchange(await token())).json, {
    error: { code: 'request.invalid', details: { errors: [{ path: '/environment' }] } },
  });
  t.equal((await exchange(await token(), { environment: 'test' })).json.trust_rule_id, test);
  const elsewhere = await trust(t, { repository: 'acme/app' }, { projectId: other });
  t.match((await exchange(await token(), { environment: 'live' })).json, {
    error: { code: 'request.invalid', details: { errors: [{ path: '/project_id' }] } },
  });
  t.equal((await exchange(await token(), { project_id: other })).json.trust_rule_id, elsewhere);
  const none = await exchange(await token(), { project_id: 'prj_01JX5WQ3ZZZZZZZZZZZZZZZZZZ' });
  t.equal(none.code, 'token.not_trusted');
});

t.test('claims that cannot be recorded are left out; an identity beyond 4 KiB is not trusted', async (t) => {
  const names = Array.from({ length: 16 }, (_, n) => `claim_${n}`);
  await trust(t, { repository: 'acme/app' }, { recordedClaims: names });
  const withEach = (value: unknown) => github(Object.fromEntries(names.map((name) => [name, value])));
  const { json } = await exchange(
    await issuer.sign({
      ...withEach('x'),
      claim_0: 'é'.repeat(129),
      claim_1: 'a\0b',
      claim_2: ['x'],
      claim_3: 7,
    }),
  );
  const { claims } = (json.identity ?? {}) as { claims: Record<string, string> };
  t.same(Object.keys(claims), names.slice(3));
  t.equal(claims.claim_3, '7');
  await notTrusted(t, 'too much', await issuer.sign(withEach('\n'.repeat(256))), /longer than 4096 bytes/);
});
