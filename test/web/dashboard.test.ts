/**
 * The dashboard in a real browser, over one service. `PICTURES=DIR npm run test:one -- test/web/dashboard.test.ts` keeps
 * pictures of its pages.
 */
import { mkdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { startApp } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import {
  findAccessibilityProblems,
  findOverflows,
  type GuardedPage,
  startBrowser,
  takePictures,
} from '../support/calling/browser.js';
import { newLink } from '../support/calling/sessions.js';
import { newKey } from '../support/calling/test-keys.js';

const PICTURES = process.env.PICTURES;
const app = await startApp(t);
const browser = await startBrowser(t);
const admin = adminOf(app);
const origin = app.baseUrl;
const key = await newKey(app);

/** What must hold of every page, in both colour schemes. */
async function assertGood(t: Test, page: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    t.same(await findAccessibilityProblems(page), [], `${name} is accessible, ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  t.same(await findOverflows(page), [], `${name} fits`);
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await takePictures(page, { dir: PICTURES, name });
}

/** Opens a page in a browser that is signed in to the project of the key. */
async function signedIn(t: Test, path: string, use: (guarded: GuardedPage) => Promise<void>): Promise<void> {
  const link = await newLink(app, key.projectId);
  await browser.visit(t, { origin }, async (guarded) => {
    const { page } = guarded;
    await page.goto(`${origin}/dashboard/sign-in#${link}`);
    await page.getByRole('button', { name: 'Sign in to the project' }).click();
    await page.getByRole('heading', { name: 'Submissions' }).waitFor();
    guarded.takeProblems();
    await page.goto(`${origin}/dashboard${path}`);
    page.setDefaultTimeout(20_000);
    await use(guarded);
  });
}

t.test('the operator signs in with the token and out again', async (t) => {
  await browser.visit(t, { origin }, async ({ page, takeProblems }) => {
    await page.goto(`${origin}/dashboard`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await assertGood(t, page, 'sign-in');
    await page.getByLabel('Admin token').fill('not-the-token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('this is not the admin token').waitFor();
    t.ok(
      takeProblems().every((problem) => problem.includes('401')),
      'only refusals are on the console',
    );
    await page.getByLabel('Admin token').fill(admin.token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Submissions' }).waitFor();
    t.same(await page.evaluate('document.cookie'), '', 'no script reads the cookie');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.goto(`${origin}/dashboard/keys`);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    takeProblems();
  });
});

t.test('a key that is made in the dashboard submits, and its submission shows by itself', async (t) => {
  await signedIn(t, '/keys', async ({ page }) => {
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('made in the dashboard');
    await assertGood(t, page, 'create-key');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const secret = (await page.getByLabel('API key', { exact: true }).textContent()) ?? '';
    app.recorder.secrets.add(secret);
    t.match(secret, /^svc_live_\w{38}$/);
    await assertGood(t, page, 'new-key');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await page.getByText('made in the dashboard').waitFor();
    await assertGood(t, page, 'keys');
    await page.getByRole('link', { name: 'Submissions' }).click();
    await page.getByRole('heading', { name: 'Nothing was submitted yet' }).waitFor();
    await assertGood(t, page, 'no-submissions');
    const body = {
      artifact: { sha256: 'ab'.repeat(32) },
      metadata: { schema: 'purl', purl: 'pkg:npm/left-pad@1.3.0' },
    };
    const { status, json } = await app.rest('/v1/attestations', { apiKey: secret, body });
    t.equal(status, 201);
    await page.getByText(String(json.id)).click();
    await page.getByText('Every required witness has vouched').waitFor();
    await page.getByText(/lead from the leaf|Try again/).waitFor();
    await assertGood(t, page, 'submission');
    await page.getByText('it is the root of the batch').waitFor();
  });
});
