/** The forms of the dashboard that change who may do what, in a real browser: role rules, invitations, roles, break-glass. */
import type { Page } from 'playwright-core';
import t from 'tap';
import { startApp } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import { type GuardedPage, startBrowser } from '../support/calling/browser.js';
import { newKey } from '../support/calling/test-keys.js';
import { signInAs, startLoginProvider } from '../support/identities/login-provider.js';
import { assertGood } from './dashboard-scene.js';

const provider = await startLoginProvider(t);
const app = await startApp(t, { isWithoutWorker: true, env: provider.env });
provider.register(app);
app.recorder.secrets.add(provider.env.OIDC_CLIENT_SECRET ?? '');
provider.accounts.set('bob', { name: 'Bob', email: 'bob@example.com', email_verified: true, groups: ['qa'] });
const { projectId } = await newKey(app);
const browser = await startBrowser(t);
const origin = app.baseUrl;
const signsIn = async (account: string) => (await signInAs(app, account)).outcome.code;

/** Opens the people of the project as the operator, who signs in with the admin token beside the provider. */
async function onPeople(use: (guarded: GuardedPage) => Promise<void>): Promise<void> {
  await browser.visit(t, { origin }, async (guarded) => {
    const { page, takeProblems } = guarded;
    await page.goto(`${origin}/dashboard`);
    await page.evaluate(`sessionStorage.setItem('scope', 'live ${projectId}')`);
    await page.getByText('Break-glass: admin token').click();
    await page.getByLabel('Admin token').fill(adminOf(app).token);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('heading', { name: 'Submissions' }).waitFor();
    takeProblems();
    await page.goto(`${origin}/dashboard/people`);
    await page.getByRole('heading', { name: 'Role rules', exact: true }).waitFor();
    await use(guarded);
  });
}

const table = (page: Page, name: string) => page.getByRole('table', { name });

t.test('a wrong admin token is rejected beside the provider', async (t) => {
  await browser.visit(t, { origin }, async ({ page, takeProblems }) => {
    await page.goto(`${origin}/dashboard`);
    await page.getByText('Break-glass: admin token').click();
    await page.getByLabel('Admin token').fill('not the token');
    await assertGood(t, page, 'break-glass');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('alert').waitFor();
    t.equal(await page.getByRole('heading', { name: 'Submissions' }).count(), 0);
    takeProblems();
  });
});

t.test('a role rule is added, lets people in, and is deleted with the roles that it gave', async (t) => {
  t.not(await signsIn('bob'), 'ok', 'no rule yet');
  await onPeople(async ({ page, takeProblems }) => {
    await page.getByRole('button', { name: 'Add role rule' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a role rule' });
    await dialog
      .getByLabel('Role', { exact: true })
      .selectOption('Member: webhooks, exports, corrections as well');
    await dialog.getByLabel('Claims that the person must have').fill('groups=');
    await dialog.getByRole('button', { name: 'Add role rule' }).click();
    await dialog.getByRole('alert').waitFor();
    takeProblems();
    await assertGood(t, page, 'role-rule-rejected');
    await dialog
      .getByLabel('Claims that the person must have')
      .fill('groups=qa\n\n email = *@example.com \n');
    await dialog.getByRole('button', { name: 'Add role rule' }).click();
    await table(page, 'Role rules').getByText('email: *@example.com, groups: qa').waitFor();
    t.equal(await signsIn('bob'), 'ok');
    await page.reload();
    await table(page, 'People').getByRole('cell', { name: /^Bob/ }).waitFor();
    await page.getByRole('button', { name: 'Delete email: *@example.com, groups: qa' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete rule' }).click();
    await page.getByText('No role rules yet').waitFor();
  });
  t.not(await signsIn('bob'), 'ok', 'the role has ended');
});

t.test('an invitation is taken back, another is accepted, and the role changed and removed', async (t) => {
  const invite = async (page: Page) => {
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('button', { name: 'Make the link' }).click();
    const link = (await page.getByLabel('invitation link', { exact: true }).textContent()) ?? '';
    const secret = link.slice(link.indexOf('#') + 1);
    app.recorder.secrets.add(secret);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await table(page, 'Open invitations').getByText('whoever has the link').waitFor();
    return secret;
  };
  await onPeople(async ({ page }) => {
    const takenBack = await invite(page);
    await page.getByRole('button', { name: /^Take back / }).click();
    await page.getByText('No invitation is open').waitFor();
    t.not((await signInAs(app, 'bob', takenBack)).outcome.code, 'ok', 'it does not work any more');
    t.equal((await signInAs(app, 'bob', await invite(page))).outcome.code, 'ok');
    await page.reload();
    const row = table(page, 'People').getByRole('row', { name: /Bob/ });
    await row.getByRole('cell', { name: 'member', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Change role of Bob' }).click();
    const dialog = page.getByRole('dialog', { name: 'Role of Bob' });
    await dialog.getByLabel('Role', { exact: true }).selectOption('Admin: says who has access as well');
    await assertGood(t, page, 'change-role');
    await dialog.getByRole('button', { name: 'Set role' }).click();
    await row.getByRole('cell', { name: 'admin', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Remove Bob' }).click();
    await page.getByLabel('Revoke the keys and trust rules that this person made').check();
    await assertGood(t, page, 'remove-member');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await row.waitFor({ state: 'detached' });
  });
  t.not(await signsIn('bob'), 'ok');
});
