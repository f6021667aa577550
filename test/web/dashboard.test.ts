/**
 * The dashboard in a real browser, over one service. `PICTURES=DIR npm run test:one -- test/web/dashboard.test.ts` keeps
 * pictures of its pages.
 */
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { ApiKeyService } from '../../gen/attestation/admin/v1/api_keys_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { newKey } from '../support/calling/test-keys.js';
import { assertNoLeaks } from '../support/judging/recorder.js';
import { until } from '../support/until.js';
import { testFollowing } from './dashboard-following.js';
import { assertGood, setDashboardScene } from './dashboard-scene.js';
import { testSubmissions } from './dashboard-submissions.js';

const scene = await setDashboardScene(t);
const { app, browser, admin, key, signedIn, asOperator, submit } = scene;
const origin = app.baseUrl;
const MAX_FIRST_PAGE_BYTES = 110 * 1024;
const MANY = 10_000;

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
    for (const _ of [1, 2]) await page.keyboard.press('Escape');
    await page.mouse.click(3, 3);
    t.equal(await page.getByRole('dialog').count(), 1, 'only its button takes the key away');
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

testSubmissions(t, scene);
testFollowing(t, scene);

t.test('usage against limits, and the audit log with its filters', async (t) => {
  await signedIn(t, '/usage', async ({ page }) => {
    await page.locator('.chart canvas').first().waitFor();
    await page.getByRole('table', { name: 'Usage by day' }).waitFor();
    await page.getByRole('meter').first().waitFor();
    await page
      .getByText(/^Limit: [\d,]+ a day, of \d+ keys together/)
      .first()
      .waitFor();
    await page.getByRole('radio', { name: 'Fit limit' }).first().click();
    await page.locator('.u-legend').getByText('Limit').waitFor();
    await page.locator('.chart .u-over').first().hover();
    await page
      .locator('.chart-hover')
      .first()
      .getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/)
      .waitFor();
    await assertGood(t, page, 'usage');
    await page.getByRole('radio', { name: 'By hour' }).click();
    await page.getByRole('table', { name: 'Usage by hour' }).waitFor();
    await page.getByRole('link', { name: 'Audit log' }).click();
    await page.getByRole('cell', { name: 'session.started' }).first().waitFor();
    await assertGood(t, page, 'audit');
    await page.getByLabel(/Id of a key/).fill('key_nothing');
    await page.getByRole('heading', { name: 'No entry is like this' }).waitFor();
  });
});

t.test('keys are rotated and revoked', async (t) => {
  const limits = { perSecond: 60, perHour: 10_000, perDay: 100_000, readsPerSecond: 600 };
  const made = await newKey(app, { projectId: key.projectId, limits });
  await signedIn(t, '/keys', async ({ page }) => {
    const row = page.getByRole('row').filter({ hasText: made.key.slice(-4) });
    await row.getByRole('button', { name: /^Rotate/ }).click();
    await assertGood(t, page, 'rotate');
    await page.getByRole('button', { name: 'Rotate key' }).click();
    app.recorder.secrets.add((await page.getByLabel('API key', { exact: true }).textContent()) ?? '');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await row.getByRole('button', { name: /^Revoke/ }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await row.getByRole('button', { name: /^Revoke/ }).click();
    await page.getByRole('button', { name: 'Revoke key' }).click();
    await row.getByText('revoked').waitFor();
  });
  t.match(await admin.ask(ApiKeyService.method.getApiKey, { id: made.id }), {
    status: 'API_KEY_STATUS_REVOKED',
  });
});

t.test('the operator sets public look-up and makes a sign-in link', async (t) => {
  const id = await submit({ purl: 'pkg:npm/public@1.0.0' });
  await app.drain();
  t.equal((await app.rest(`/verify/bundle/${id}`)).status, 404);
  await signedIn(t, '/project', async ({ page }) => {
    await page.getByText('As the service is set').waitFor();
    t.equal(
      await page.getByRole('button', { name: 'Save', exact: true }).count(),
      0,
      'its own sessions only read them',
    );
    await assertGood(t, page, 'own-project');
  });
  await asOperator(t, '/project', async ({ page }) => {
    await page.getByLabel('Public look-up').selectOption('On: those who have a file find its proofs');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Saved.').waitFor();
    await assertGood(t, page, 'project');
    await page.getByRole('button', { name: 'Make a sign-in link' }).click();
    const link = (await page.getByLabel('sign-in link', { exact: true }).textContent()) ?? '';
    app.recorder.secrets.add(link.slice(link.indexOf('#') + 1));
    await assertGood(t, page, 'sign-in-link');
    await page.getByRole('button', { name: 'I have copied it' }).click();
    const sessions = page.getByRole('table', { name: 'Sessions of the project' });
    const ends = sessions.getByRole('button', { name: /^End ses_/ });
    const before = await ends.count();
    await ends.first().click();
    await page.getByRole('button', { name: 'End it' }).click();
    await until('one session less is open', async () => (await ends.count()) === before - 1);
    await page.getByRole('table', { name: 'The operator’s sessions' }).getByText('this one').waitFor();
    await page.getByRole('button', { name: 'End all sessions' }).click();
    await page.getByRole('button', { name: 'End them' }).click();
    await page.getByText(/ and 1 links were ended/).waitFor();
    await page.getByRole('link', { name: 'audit log', exact: true }).click();
    await page.getByRole('cell', { name: 'project.changed' }).first().waitFor();
    await page.getByText('public_lookup').first().waitFor();
  });
  t.equal((await app.rest(`/verify/bundle/${id}`)).status, 200);
});

t.test('a trust rule is added and removed', async (t) => {
  await signedIn(t, '/keys', async ({ page }) => {
    await page.getByRole('button', { name: 'Add rule' }).click();
    const dialog = page.getByRole('dialog');
    await assertGood(t, page, 'add-trust-rule');
    await dialog.getByLabel('Repository').fill('acme/app');
    await dialog.getByLabel('Claims that the token must have').fill('ref=refs/heads/main\n');
    await dialog.getByRole('button', { name: 'Add rule' }).click();
    const row = page.getByRole('row').filter({ hasText: 'ref: refs/heads/main, repository: acme/app' });
    await row.waitFor();
    await assertGood(t, page, 'trust-rules');
    await row.getByRole('button', { name: /^Remove/ }).click();
    await page.getByRole('button', { name: 'Remove rule' }).click();
    await row.waitFor({ state: 'detached' });
  });
});

t.test('a key is made with the keyboard alone on a narrow screen, and the focus comes back', async (t) => {
  const focused = `(({ ariaLabel, textContent, labels }) => (labels?.[0]?.textContent ?? (ariaLabel || textContent)).trim())(document.activeElement)`;
  await signedIn(
    t,
    '/keys',
    async ({ page }) => {
      await page.getByRole('heading', { name: 'API keys' }).waitFor();
      await page.getByRole('button', { name: 'Create key' }).waitFor();
      const tabTo = async (name: string) => {
        for (let i = 0; i < 60; i++) {
          if ((await page.evaluate(focused)) === name) return;
          await page.keyboard.press('Tab');
        }
        t.fail(`${name} is not reached`);
      };
      await page.keyboard.press('Tab');
      t.equal(await page.evaluate(focused), 'Skip to content');
      await page.keyboard.press('Enter');
      await tabTo('Create key');
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      t.equal(await page.evaluate(focused), 'Name', 'the focus is in the dialog');
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await until('the focus is back', async () => (await page.evaluate(focused)) === 'Create key');
      await page.keyboard.press('Enter');
      await page.keyboard.type('by keyboard');
      await page.keyboard.press('Enter');
      const secret = await page.getByLabel('API key', { exact: true }).textContent();
      app.recorder.secrets.add(secret ?? '');
      await tabTo('I have copied it');
      await page.keyboard.press('Enter');
      await page.getByText('by keyboard').waitFor();
      await assertGood(t, page, 'keys-narrow');
      await page.keyboard.press('Home');
      await page.getByRole('link', { name: 'Project', exact: true }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Settings' }).waitFor();
      t.equal(await page.evaluate('document.activeElement.id'), 'content', 'the focus is in the new page');
      await page.reload();
      await page.getByRole('heading', { name: 'Settings' }).waitFor();
      const box = await page.getByRole('link', { name: 'Project', exact: true }).boundingBox();
      t.ok(box !== null && box.x >= 0 && box.x + box.width <= 360, 'the link of the page is in view');
    },
    { width: 360 },
  );
});

t.test('errors name the failed request, and the page stays usable', async (t) => {
  await signedIn(t, '/submissions/sub_01JX5WQ3ZZZZZZZZZZZZZZZZZZ', async ({ page, takeProblems }) => {
    await page.getByRole('alert').getByText('submission.not_found').waitFor();
    takeProblems();
    await assertGood(t, page, 'not-found');
    await page.getByRole('link', { name: 'Submissions' }).click();
    await page.getByRole('feed').waitFor();
  });
});

t.test('ten thousand submissions scroll, and few of them are in the document', async (t) => {
  const test = await newKey(app, { projectId: key.projectId, environment: Environment.TEST });
  const id = await submit({ purl: 'pkg:npm/many@1.0.0' }, {}, test.key);
  await app.pool`
    INSERT INTO submission SELECT (jsonb_populate_record(s, jsonb_build_object(
      'id', 'sub_' || lpad(n::text, 26, '0'), 'log_index', s.log_index + n))).*
    FROM submission s, generate_series(1, ${MANY}) n WHERE s.id = ${id}`;
  await signedIn(t, '/submissions', async ({ page }) => {
    await page.getByRole('radio', { name: 'Test' }).click();
    await page.getByText('200 or more submissions').waitFor();
    let most = 0;
    await until('the first submission is in view', async () => {
      most = Math.max(most, await page.getByRole('article').count());
      await page.evaluate("document.querySelector('[role=feed]').scrollTo(0, 1e9)");
      return page.getByText(id).isVisible();
    });
    t.ok(most < 60, `${most} at a time`);
    await page.getByText(`${(MANY + 1).toLocaleString('en')} submissions`).waitFor();
  });
});

t.test('the first page is small, and nothing secret was logged', async (t) => {
  const built = new URL('../../web/', import.meta.url);
  const index = readFileSync(new URL('dashboard/index.html', built), 'utf8');
  const first = [...index.matchAll(/(?:src|href)="\/(dashboard\/assets\/[^"]+)"/g)].map(
    ([, path]) => path ?? '',
  );
  t.ok(first.length > 2);
  const sizes = first.map((path) => gzipSync(readFileSync(new URL(path, built))).length);
  t.ok(sizes.reduce((sum, size) => sum + size, gzipSync(index).length) < MAX_FIRST_PAGE_BYTES, sizes.join());
  assertNoLeaks(t, app.recorder);
});
