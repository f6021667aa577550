/** Signing in at an identity provider, a real one, and what is refused on the way. */
import { generateKeyPair, importJWK, type JWTPayload, SignJWT } from 'jose';
import t from 'tap';
import { AuditService } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectService } from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { newBrowser } from '../../../support/calling/sessions.js';
import {
  finishSigningIn,
  passProvider,
  signInAs,
  startLoginProvider,
  startSigningIn,
} from '../../../support/identities/login-provider.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';

const provider = await startLoginProvider(t);
const app = await startApp(t, {
  isWithoutWorker: true,
  env: { ...provider.env, OIDC_OPERATORS: 'groups=platform, email=olga@example.com' },
});
provider.register(app);
const admin = adminOf(app);
app.recorder.secrets.add(provider.env.OIDC_CLIENT_SECRET ?? '');
const ALICE = {
  name: 'Alice',
  email: 'alice@example.com',
  email_verified: true,
  groups: ['staff', 'platform'],
};
provider.accounts.set('alice', ALICE);
const { getSession, getSignInWays, signOut, startSignIn } = SessionService.method;
const { listProjects } = ProjectService.method;

t.test('an operator by a group signs in, and does what the admin token may', async (t) => {
  const { browser, outcome } = await signInAs(app, 'alice');
  t.match(outcome, { code: 'ok', response: { person: { name: 'Alice', email: 'alice@example.com' } } });
  const cookie = /^attest-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/;
  t.match(outcome.headers['set-cookie'], cookie);
  t.match((await browser.call(getSession, {})).response, { person: { id: /^per_/, name: 'Alice' } });
  t.equal((await browser.call(listProjects, {})).code, 'ok');
  const { data } = await admin.ask(AuditService.method.listAuditEntries, {});
  t.match(data, [
    { action: 'AUDIT_ACTION_SESSION_STARTED', detail: { by: 'provider', operator_by: 'groups=platform' } },
  ]);
  const again = await signInAs(app, 'alice');
  t.equal(
    (again.outcome.response.person as { id: string }).id,
    (outcome.response.person as { id: string }).id,
    'he is the same person the next time',
  );
});

t.test(
  'the way to the provider has PKCE, nonce and state, each new, and no other address to return to',
  async (t) => {
    const [first, second] = [await startSigningIn(app), await startSigningIn(app)];
    const [one, two] = [new URL(first.url).searchParams, new URL(second.url).searchParams];
    t.match(Object.fromEntries(one), {
      response_type: 'code',
      redirect_uri: `${app.baseUrl}/dashboard/sign-in/callback`,
      scope: 'openid email profile groups',
      code_challenge_method: 'S256',
      code_challenge: /^[\w-]{43}$/,
    });
    for (const name of ['state', 'nonce', 'code_challenge']) t.not(one.get(name), two.get(name), name);
    t.match(first.browser.cookie, /^attest-sign-in=[\w-]{43}\.\d+$/);
    const { response } = await newBrowser(app).call(getSignInWays, {});
    t.same(response, { provider: 'Acme', adminToken: true });
  },
);

t.test('a sign-in that begins in one process ends in another', async (t) => {
  const address = 'http://dashboard.example.com';
  const behindProxy = await startApp(t, {
    apis: 2,
    isWithoutWorker: true,
    env: { ...provider.env, OIDC_OPERATORS: 'groups=platform', DASHBOARD_URL: address },
  });
  provider.register({ ...behindProxy, baseUrl: address });
  const [, second = ''] = behindProxy.baseUrls;
  const { browser, url } = await startSigningIn(behindProxy);
  const callback = await passProvider(url, 'alice', address);
  const other = newBrowser(behindProxy, {}, second);
  other.cookie = browser.cookie;
  t.equal((await finishSigningIn(other, callback)).code, 'ok');
  t.match((await other.call(getSession, {})).response, { person: { name: 'Alice' } });
  provider.register(app);
});

t.test('people whom the provider knows, and who have no access, get an error that names them', async (t) => {
  provider.accounts.set('mallory', { name: 'Mallory', email: 'olga@example.com', email_verified: false });
  provider.accounts.set('bob', { name: 'Bob', email: 'bob@example.com', email_verified: true });
  for (const [account, known] of [
    ['mallory', 'olga@example.com'],
    ['bob', 'bob@example.com'],
  ] as const) {
    const { outcome, browser } = await signInAs(app, account);
    t.match(outcome, { status: 401, code: 'auth.invalid_key' });
    t.match(outcome.message, `Acme knows you as ${known}, but nobody has given you access`);
    t.equal((await browser.call(listProjects, {})).status, 401);
  }
  t.same(await app.pool`SELECT FROM person WHERE subject IN ('mallory', 'bob')`, [], 'and is not kept');
  provider.accounts.set('mallory', { name: 'Mallory', email: 'olga@example.com', email_verified: true });
  t.equal((await signInAs(app, 'mallory')).outcome.code, 'ok', 'a verified address counts');
});

t.test('a callback is for the browser that began, once', async (t) => {
  const { browser, callback } = await signInAs(app, 'alice');
  const began = await startSigningIn(app);
  const other = await passProvider(began.url, 'alice', app.baseUrl);
  t.match(await finishSigningIn(newBrowser(app), other), { message: /has not begun to sign in/ });
  const stranger = (await startSigningIn(app)).browser;
  t.match(await finishSigningIn(stranger, other), {
    code: 'auth.invalid_key',
    message: /cannot be verified/,
  });
  const replaying = newBrowser(app, { cookie: began.browser.cookie });
  t.equal((await finishSigningIn(began.browser, other)).code, 'ok');
  t.match(await finishSigningIn(replaying, other), { code: 'auth.invalid_key', message: /used already/ });
  t.match(await finishSigningIn(browser, callback), { message: /has not begun to sign in/ });
});

t.test('hostile callbacks are rejected', async (t) => {
  const { browser, url } = await startSigningIn(app);
  const callback = await passProvider(url, 'alice', app.baseUrl);
  const change = (name: string, value: string | undefined) => {
    const changed = new URL(callback);
    if (value === undefined) changed.searchParams.delete(name);
    else changed.searchParams.set(name, value);
    return changed;
  };
  const twice = new URL(callback);
  twice.searchParams.append('state', 'another');
  const table: [what: string, callback: URL, message: RegExp][] = [
    ['another state', change('state', 'x'), /cannot be verified/],
    ['no state', change('state', undefined), /cannot be verified/],
    ['two states', twice, /cannot be verified/],
    ['another issuer', change('iss', 'https://evil.example.com'), /cannot be verified/],
    ['no issuer', change('iss', undefined), /cannot be verified/],
    ['no code', change('code', undefined), /cannot be verified/],
    ['an error', change('error', 'access_denied'), /did not sign you in \(access_denied\)/],
    ['a wild error', change('error', '<script>'), /did not sign you in \(an error\)/],
  ];
  for (const [what, changed, message] of table) {
    await app.pool`DELETE FROM sign_in_attempt`;
    const outcome = await finishSigningIn(newBrowser(app, { cookie: browser.cookie }), changed);
    t.match(outcome, { status: 401, code: 'auth.invalid_key', message }, what);
  }
  for (const value of ['', 'x'.repeat(8193)]) {
    const outcome = await browser.signIn({ credential: { case: 'callback', value } });
    t.equal(outcome.code, 'request.invalid');
  }
  t.equal((await finishSigningIn(browser, callback)).code, 'ok', 'the right one still works');
  const old = newBrowser(app, {
    cookie: `attest-sign-in=${'A'.repeat(43)}.${Math.floor(Date.now() / 1000) - 601}`,
  });
  t.match(await finishSigningIn(old, callback), { message: /ten minutes ago/ });
});

t.test('ID tokens with any wrong claim, key or algorithm are rejected', async (t) => {
  const key = await importJWK(provider.key());
  const { privateKey: otherKey } = await generateKeyPair('RS256');
  const now = Math.floor(Date.now() / 1000);
  const attempt = async (change: JWTPayload, sign = key, alg = 'RS256') => {
    await app.pool`DELETE FROM sign_in_attempt`;
    const { browser, url } = await startSigningIn(app);
    const callback = await passProvider(url, 'alice', app.baseUrl);
    const nonce = new URL(url).searchParams.get('nonce');
    const good = {
      iss: provider.url,
      aud: provider.env.OIDC_CLIENT_ID,
      sub: 'alice',
      nonce,
      iat: now,
      exp: now + 60,
    };
    const claims = Object.fromEntries(
      Object.entries({ ...good, ...change }).filter(([, value]) => value !== undefined),
    );
    const header = { alg, kid: 'of-the-provider' };
    const unsigned = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
    const idToken =
      alg === 'none'
        ? `${unsigned.join('.')}.`
        : await new SignJWT(claims).setProtectedHeader(header).sign(sign);
    provider.intercept = ({ url: path = '' }, response) => {
      const answer = path.startsWith('/token')
        ? { access_token: 'x', token_type: 'Bearer', id_token: idToken }
        : path.startsWith('/me')
          ? { sub: 'alice', ...ALICE }
          : undefined;
      if (answer === undefined) return false;
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
      return true;
    };
    const outcome = await finishSigningIn(browser, callback);
    provider.intercept = undefined;
    return outcome;
  };
  t.equal((await attempt({})).code, 'ok', 'a good one');
  const table: [what: string, change: JWTPayload, sign?: typeof key, alg?: string][] = [
    ['expired', { exp: now - 60 }],
    ['of another audience', { aud: 'another-client' }],
    ['of several audiences, authorized for another', { aud: ['the-dashboard', 'x'], azp: 'x' }],
    ['of another issuer', { iss: 'https://evil.example.com' }],
    ['with another nonce', { nonce: 'x' }],
    ['without a nonce', { nonce: undefined }],
    ['without a subject', { sub: undefined }],
    ['without an expiry', { exp: undefined }],
    ['of somebody else than the user info', { sub: 'olga' }],
    ['signed by another key', {}, otherKey],
    ['unsigned', {}, key, 'none'],
    ['signed with the client secret', {}, new TextEncoder().encode('x'.repeat(32)), 'HS256'],
    ['with a subject that cannot be stored', { sub: 'a\u0000' }],
  ];
  for (const [what, change, sign, alg] of table) {
    const outcome = await attempt(change, sign, alg);
    t.match(
      outcome,
      { status: 401, code: 'auth.invalid_key', message: /cannot be verified|1 to 1024 bytes/ },
      what,
    );
  }
});

t.test('while the provider is away a sign-in is 503, and the admin token signs in', async (t) => {
  await app.pool`DELETE FROM sign_in_attempt`;
  const { browser, url } = await startSigningIn(app);
  const callback = await passProvider(url, 'alice', app.baseUrl);
  for (const answer of [500, 0]) {
    provider.intercept = ({ socket }, response) => {
      if (answer === 0) socket.destroy();
      else response.writeHead(answer).end('<h1>Oops</h1>');
      return true;
    };
    const outcome = await finishSigningIn(browser, callback);
    t.match(outcome, {
      status: 503,
      code: 'service.unavailable',
      message: /^Acme cannot be reached; try again/,
    });
  }
  provider.intercept = undefined;
  const away = await startApp(t, {
    isWithoutWorker: true,
    env: { ...provider.env, OIDC_ISSUER: 'http://127.0.0.1:9/tenant' },
  });
  const outcome = await newBrowser(away).call(startSignIn, {});
  t.match(outcome, { status: 503, code: 'service.unavailable', headers: { 'retry-after': '5' } });
  const glass = newBrowser(away);
  const token = { credential: { case: 'adminToken' as const, value: adminOf(away).token } };
  t.equal((await glass.signIn(token)).code, 'ok');
  t.equal((await glass.call(listProjects, {})).code, 'ok');
  const warned = away.recorder.lines.filter((line) => line.includes('signed in with the admin token'));
  t.match(warned, [/"level":"warn"/], 'which is logged');
});

t.test('without an admin token the admin API and the dashboard are there for people', async (t) => {
  const own = await startApp(t, {
    isWithoutWorker: true,
    isWithoutAdmin: true,
    env: { ...provider.env, OIDC_OPERATORS: 'groups=platform' },
  });
  provider.register(own);
  const { browser, outcome } = await signInAs(own, 'alice');
  t.equal(outcome.code, 'ok');
  t.equal((await browser.call(listProjects, {})).code, 'ok');
  t.same((await browser.call(getSignInWays, {})).response, { provider: 'Acme' });
  const wrong = { credential: { case: 'adminToken' as const, value: 'x'.repeat(24) } };
  t.match(await newBrowser(own).signIn(wrong), { code: 'auth.invalid_key' });
  provider.register(app);
});

t.test('signing out ends the session here and names where it ends there', async (t) => {
  await app.pool`DELETE FROM sign_in_attempt`;
  const { browser } = await signInAs(app, 'alice');
  const { response } = await browser.call(signOut, {});
  const end = new URL(String(response.providerUrl));
  t.equal(end.origin, provider.url);
  t.match(Object.fromEntries(end.searchParams), {
    client_id: provider.env.OIDC_CLIENT_ID,
    post_logout_redirect_uri: `${app.baseUrl}/dashboard/sign-in`,
  });
  t.equal((await browser.call(getSession, {})).status, 401);
  const glass = newBrowser(app);
  await glass.signIn({ credential: { case: 'adminToken', value: admin.token } });
  t.same((await glass.call(signOut, {})).response, {}, 'of the admin token there is nothing to end there');
});

t.test('a call from another origin starts no sign-in', async (t) => {
  const outcome = await newBrowser(app).call(startSignIn, {}, { 'sec-fetch-site': 'cross-site' });
  t.match(outcome, { status: 403, code: 'auth.insufficient_scope' });
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
