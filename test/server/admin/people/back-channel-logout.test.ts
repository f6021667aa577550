/** The identity provider ends sessions: a real one, and every wrong token. */
import { randomUUID } from 'node:crypto';
import { generateKeyPair, importJWK, type JWTPayload, SignJWT } from 'jose';
import t from 'tap';
import { AuditService } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { pruneLogoutTokens } from '../../../../src/server/admin/store/logout.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import type { Browser } from '../../../support/calling/sessions.js';
import {
  finishSigningIn,
  passProvider,
  signInAs,
  signOutAtProvider,
  startLoginProvider,
  startSigningIn,
} from '../../../support/identities/login-provider.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';

const provider = await startLoginProvider(t);
const app = await startApp(t, {
  isWithoutWorker: true,
  env: { ...provider.env, OIDC_OPERATORS: 'groups=platform', TRUSTED_PROXIES: 'none' },
});
provider.register(app);
for (const name of ['alice', 'bob']) provider.accounts.set(name, { name, groups: ['platform'] });
const { getSession, signOut } = SessionService.method;
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
const FORM = 'application/x-www-form-urlencoded';

const isOpen = async (browser: Browser) => (await browser.call(getSession, {})).code === 'ok';

async function send(body: string, contentType = FORM) {
  const url = `${app.baseUrl}/dashboard/sign-in/back-channel-logout`;
  const answer = await fetch(url, { method: 'POST', headers: { 'content-type': contentType }, body });
  return { status: answer.status, cache: answer.headers.get('cache-control'), text: await answer.text() };
}

const key = await importJWK(provider.key());
const { privateKey: otherKey } = await generateKeyPair('RS256');

/** A logout token of everything of alice, with changes; a claim that is undefined is left out. */
async function tokenOf(change: JWTPayload = {}, sign = key, header = {}): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const good = {
    iss: provider.url,
    aud: provider.env.OIDC_CLIENT_ID,
    sub: 'alice',
    iat: now,
    exp: now + 120,
    jti: randomUUID(),
    events: { [EVENT]: {} },
  };
  const claims = Object.fromEntries(
    Object.entries({ ...good, ...change }).filter(([, value]) => value !== undefined),
  );
  const kid = 'of-the-provider';
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', kid, typ: 'logout+jwt', ...header })
    .sign(sign);
}

const form = (token: string) => new URLSearchParams({ logout_token: token }).toString();

t.test('signing out at the provider ends the sessions of that browser, and no others', async (t) => {
  const cookies = new Map<string, string>();
  const { browser, url } = await startSigningIn(app);
  await finishSigningIn(browser, await passProvider(url, 'alice', app.baseUrl, cookies));
  const { browser: elsewhere } = await signInAs(app, 'alice');
  const { browser: bob } = await signInAs(app, 'bob');
  const { response } = await elsewhere.call(signOut, {});
  const { browser: third } = await signInAs(app, 'alice');
  await signOutAtProvider(String(response.providerUrl), cookies);
  await until('the session has ended', async () => !(await isOpen(browser)));
  t.ok(await isOpen(third), 'another session of the provider goes on');
  t.ok(await isOpen(bob));
  const { data } = await adminOf(app).ask(AuditService.method.listAuditEntries, { limit: 1 });
  const actor = { kind: 'AUDIT_ACTOR_KIND_SYSTEM', id: 'identity provider' };
  t.match(data, [
    { action: 'AUDIT_ACTION_SESSION_ENDED', actor, detail: { by: 'provider', person: /^per_/ } },
  ]);
});

t.test('a token for a subject ends all of its sessions, once', async (t) => {
  const [{ browser: one }, { browser: two }, { browser: bob }] = [
    await signInAs(app, 'alice'),
    await signInAs(app, 'alice'),
    await signInAs(app, 'bob'),
  ];
  const token = await tokenOf();
  t.match(await send(form(token)), { status: 200, cache: 'no-store', text: '' });
  t.same([await isOpen(one), await isOpen(two), await isOpen(bob)], [false, false, true]);
  const { browser: three } = await signInAs(app, 'alice');
  t.match(await send(form(token)), { status: 400, text: /used already/ });
  t.ok(await isOpen(three), 'a replayed token ends nothing');
  t.match(await send(form(await tokenOf({ sid: 'of-nobody' }))), { status: 200 });
  t.ok(await isOpen(three), 'a session that is named has to be its own');
  await app.pool`UPDATE logout_token SET expires_at = clock_timestamp()`;
  await pruneLogoutTokens(app.pool);
  t.same(await app.pool`SELECT FROM logout_token`, []);
});

t.test('wrong tokens are rejected, and end nothing', async (t) => {
  const { browser } = await signInAs(app, 'alice');
  const now = Math.floor(Date.now() / 1000);
  const secret = new TextEncoder().encode('x'.repeat(32));
  const table: [what: string, token: string][] = [
    ['of another issuer', await tokenOf({ iss: 'https://evil.example.com' })],
    ['for another client', await tokenOf({ aud: 'another' })],
    ['expired', await tokenOf({ exp: now - 60 })],
    ['old', await tokenOf({ iat: now - 700 })],
    ['of the future', await tokenOf({ iat: now + 120 })],
    ['without iat', await tokenOf({ iat: undefined })],
    ['without exp', await tokenOf({ exp: undefined })],
    ['without jti', await tokenOf({ jti: undefined })],
    ['with a jti that is no text', await tokenOf({ jti: 7 as unknown as string })],
    ['without events', await tokenOf({ events: undefined })],
    ['with another event', await tokenOf({ events: { 'http://schemas.openid.net/event/other': {} } })],
    ['with an event that is no object', await tokenOf({ events: { [EVENT]: true } })],
    ['with a nonce', await tokenOf({ nonce: 'x' })],
    ['without sub and sid', await tokenOf({ sub: undefined })],
    ['with an empty sub', await tokenOf({ sub: '' })],
    ['of another type', await tokenOf({}, key, { typ: 'at+jwt' })],
    ['signed by another key', await tokenOf({}, otherKey)],
    ['signed with a secret', await tokenOf({}, secret, { alg: 'HS256' })],
    ['cut short', (await tokenOf()).slice(0, -3)],
    ['no token', 'nonsense'],
    ['empty', ''],
  ];
  for (const [what, token] of table) {
    await app.pool`DELETE FROM sign_in_attempt`;
    const { status, text } = await send(form(token));
    t.equal(status, 400, what);
    t.match(JSON.parse(text), { error: 'invalid_request', error_description: /./ });
  }
  await app.pool`DELETE FROM sign_in_attempt`;
  const good = form(await tokenOf());
  t.match(await send(''), { status: 400 });
  t.match(await send(`${good}&${good}`), { status: 400 });
  t.match(await send(`${good}&x=${'x'.repeat(16 * 1024)}`), { status: 400 });
  t.match(await send(JSON.stringify({ logout_token: await tokenOf() }), 'application/json'), { status: 400 });
  t.ok(await isOpen(browser));
});

t.test('ten wrong tokens a minute close the address to their sender', async (t) => {
  await app.pool`DELETE FROM sign_in_attempt`;
  const statuses: number[] = [];
  for (let i = 0; i < 11; i++) statuses.push((await send(form('nonsense'))).status);
  t.same(statuses, [...Array(10).fill(400), 429]);
});

t.test('nothing secret was logged or answered', async (t) => {
  assertNoLeaks(t, app.recorder);
});
