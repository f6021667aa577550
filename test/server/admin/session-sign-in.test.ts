/** How sessions of the dashboard begin: by a token or a link, with a cookie, and not after many failures. */
import t from 'tap';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { readSessionCookie, sessionCookie } from '../../../src/server/core/http/session-cookie.js';
import { pruneSignInAttempts } from '../../../src/server/limits/sign-in-attempts.js';
import { newBrowser } from '../../support/calling/sessions.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { setSessionScene } from './session-scene.js';

const { app, admin, byToken, byLink } = await setSessionScene(t);
const one = await newKey(app);
const { getSession, signOut, createSignInLink } = SessionService.method;

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
