/** People in the dashboard: signing in at a real identity provider in a real browser, inviting, signing out. */
import t from 'tap';
import { startApp } from '../support/app.js';
import { startBrowser } from '../support/calling/browser.js';
import { newKey } from '../support/calling/test-keys.js';
import { startLoginProvider } from '../support/identities/login-provider.js';
import { assertGood } from './dashboard-scene.js';

const provider = await startLoginProvider(t);
const app = await startApp(t, {
  isWithoutWorker: true,
  env: { ...provider.env, OIDC_OPERATORS: 'groups=platform' },
});
provider.register(app);
app.recorder.secrets.add(provider.env.OIDC_CLIENT_SECRET ?? '');
provider.accounts.set('alice', { name: 'Alice', groups: ['platform'] });
provider.accounts.set('bob', { name: 'Bob', email: 'bob@example.com', email_verified: true });
await newKey(app);
const browser = await startBrowser(t);
const origin = app.baseUrl;
let invitation = '';

t.test('an operator signs in at the provider, invites another, and signs out there too', async (t) => {
  await browser.visit(t, { origin }, async ({ page, takeProblems }) => {
    await page.goto(`${origin}/dashboard`);
    const button = page.getByRole('button', { name: 'Sign in with Acme' });
    await button.waitFor();
    await assertGood(t, page, 'sign-in-with-provider');
    await button.click();
    await page.locator('input[name=login]').fill('alice');
    await page.locator('input[name=password]').fill('any');
    await page.locator('button[type=submit]').click();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'Submissions' }).waitFor();
    takeProblems();
    t.notMatch(page.url(), /code=/, 'the address has no code');
    await page.getByText('Alice', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'People' }).click();
    await page.getByRole('heading', { name: 'Nobody has a role yet' }).waitFor();
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByLabel('E-mail address').fill('bob@example.com');
    await assertGood(t, page, 'invite');
    await page.getByRole('button', { name: 'Make the link' }).click();
    invitation = (await page.getByLabel('invitation link', { exact: true }).textContent()) ?? '';
    app.recorder.secrets.add(invitation.slice(invitation.indexOf('#') + 1));
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByRole('cell', { name: 'bob@example.com' }).waitFor();
    await assertGood(t, page, 'people');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.waitForURL(`${provider.url}/session/end**`);
    t.equal(new URL(page.url()).searchParams.get('client_id'), provider.env.OIDC_CLIENT_ID);
    takeProblems();
  });
});

t.test('who is invited signs in with the link, and sees people without what changes them', async (t) => {
  await browser.visit(t, { origin }, async ({ page, takeProblems }) => {
    await page.goto(invitation);
    await page.getByRole('button', { name: 'Sign in with Acme' }).click();
    await page.locator('input[name=login]').fill('bob');
    await page.locator('input[name=password]').fill('any');
    await page.locator('button[type=submit]').click();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'Submissions' }).waitFor();
    takeProblems();
    await page.getByRole('link', { name: 'People' }).click();
    await page.getByRole('cell', { name: 'bob@example.com' }).waitFor();
    await page.getByText('member').first().waitFor();
    t.equal(await page.getByRole('button', { name: 'Invite' }).count(), 0);
  });
});

t.test('a return that was not begun here is rejected, with a way to try again', async (t) => {
  await browser.visit(t, { origin }, async ({ page, takeProblems }) => {
    const answer = await page.goto(`${origin}/dashboard/sign-in/callback?code=x&state=y`);
    t.match(answer?.headers(), { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
    await page.getByRole('alert').getByText('sign in again').waitFor();
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    t.equal(page.url(), `${origin}/dashboard/sign-in/callback`);
    await assertGood(t, page, 'sign-in-rejected');
    takeProblems();
  });
});
