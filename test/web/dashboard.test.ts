/**
 * The dashboard in a real browser, over one service. `PICTURES=DIR npm run test:one -- test/web/dashboard.test.ts` keeps
 * pictures of its pages.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { ApiKeyService } from '../../gen/attestation/admin/v1/api_keys_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { ExportService } from '../../gen/attestation/v1/exports_pb.js';
import { exportTo } from '../server/rpc/samples.js';
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
import { startStore } from '../support/exports/s3/fixture.js';
import { assertNoLeaks } from '../support/judging/recorder.js';
import { until } from '../support/until.js';
import { answering, startReceiver } from '../support/webhooks/receiver.js';

const PICTURES = process.env.PICTURES;
const app = await startApp(t);
const browser = await startBrowser(t);
const admin = adminOf(app);
const origin = app.baseUrl;
const key = await newKey(app);
const [rest] = app.surfaces();
if (rest === undefined) throw new Error('there is no REST surface');
const MAX_FIRST_PAGE_BYTES = 250 * 1024;
const MANY = 10_000;

/** Beside the light one; dialogs are made of the same parts. */
const SEEN_IN_THE_DARK = /^(?:sign-in|keys|submission|batches|webhook|exports|usage|audit|create-key)$/;

/** What must hold of every page. */
async function assertGood(t: Test, page: Page, name: string): Promise<void> {
  t.same(await findAccessibilityProblems(page), [], `${name} is accessible`);
  if (SEEN_IN_THE_DARK.test(name)) {
    await page.emulateMedia({ colorScheme: 'dark' });
    t.same(await findAccessibilityProblems(page), [], `${name} is accessible in the dark`);
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

const HOSTILE = '<img src=x onerror="window.wasRun=1"><script>window.wasRun=1</script>\u202Egnp.exe';

async function submit(metadata: Record<string, string>, more = {}, apiKey = key.key): Promise<string> {
  const body = { artifact: { sha256: 'cd'.repeat(32) }, metadata: { schema: 'purl', ...metadata }, ...more };
  const { status, json } = await app.rest('/v1/attestations', { apiKey, body });
  t.equal(status, 201);
  return String(json.id);
}

t.test(
  'metadata of markup, scripts and bidirectional text is shown as text, corrected and erased',
  async (t) => {
    const id = await submit({ purl: HOSTILE, note: HOSTILE }, { validation: 'lenient' });
    await app.drain();
    await signedIn(t, '/submissions', async ({ page }) => {
      await page.getByText(id).waitFor();
      await assertGood(t, page, 'submissions');
      await page.getByText(id).click();
      await page.getByText('<script>window.wasRun=1</script>').first().waitFor();
      t.equal(await page.evaluate('window.wasRun'), undefined);
      t.notMatch(await page.evaluate('document.body.textContent'), '\u202e');
      await page.getByRole('button', { name: 'Correct' }).click();
      await page.getByLabel('Metadata (JSON)').fill('{');
      await page.getByText('This is not a JSON object.').waitFor();
      await page.getByLabel('Metadata (JSON)').fill('{"schema": "purl", "purl": "pkg:npm/left-pad@1.3.0"}');
      await assertGood(t, page, 'correct');
      await page.getByRole('button', { name: 'Correct it' }).click();
      await page.getByText('valid', { exact: true }).waitFor();
      const download = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Proof bundle' }).click();
      t.equal((await download).suggestedFilename(), `${id}.bundle.json`);
      await page.getByRole('button', { name: 'Erase metadata' }).click();
      await assertGood(t, page, 'redact');
      await page.getByRole('button', { name: 'Erase for good' }).click();
      await page.getByText('The proof of the file stays valid').waitFor();
      await assertGood(t, page, 'redacted');
    });
  },
);

t.test('a file finds its submissions without leaving the browser', async (t) => {
  const file = Buffer.from('the artifact');
  const sha256 = createHash('sha256').update(file).digest('hex');
  const body = { artifact: { sha256 }, metadata: { schema: 'purl', purl: 'pkg:npm/found@1.0.0' } };
  const { json } = await app.rest('/v1/attestations', { apiKey: key.key, body });
  await signedIn(t, '/submissions', async ({ page }) => {
    await page.locator('input[type=file]').setInputFiles({ name: 'a.bin', mimeType: 'x/y', buffer: file });
    await page.getByText(sha256).waitFor();
    await page.getByRole('article', { name: String(json.id) }).waitFor();
    t.equal(await page.getByRole('article').count(), 1);
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByLabel('Find by id or SHA-256').fill(String(json.id));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Submission', exact: true }).waitFor();
  });
});

t.test('batches, witnesses and the log', async (t) => {
  await signedIn(t, '/batches', async ({ page }) => {
    await page.getByRole('region', { name: 'Batches by witness' }).waitFor();
    await page.getByRole('heading', { name: 'Size of the log' }).waitFor();
    await page.getByRole('table', { name: 'Witnesses' }).waitFor();
    await page.locator('.chart canvas').waitFor();
    t.match(await page.getByLabel('checkpoint', { exact: true }).textContent(), /^live\.log\.example\.com\n/);
    await assertGood(t, page, 'batches');
  });
});

t.test('a webhook is added, tested, looked into and redelivered', async (t) => {
  const receiver = await startReceiver(t);
  receiver.behave(answering(500, 'no, thank you'));
  await signedIn(t, '/webhooks', async ({ page }) => {
    await page.getByRole('heading', { name: 'No webhooks' }).waitFor();
    await page.getByRole('button', { name: 'Add webhook' }).click();
    await page.getByLabel('Address').fill(`${receiver.url}/hook`);
    await assertGood(t, page, 'add-webhook');
    await page.getByRole('dialog').getByRole('button', { name: 'Add webhook' }).click();
    const secret = (await page.getByLabel('secret', { exact: true }).textContent()) ?? '';
    app.recorder.secrets.add(secret);
    receiver.trust(secret);
    await page.getByRole('button', { name: 'I have copied it' }).click();
    await assertGood(t, page, 'webhooks');
    await page.getByRole('link', { name: `${receiver.url}/hook` }).click();
    await page.getByRole('button', { name: 'Send a test event' }).click();
    await page.getByText(/^500, \d+ ms$/).waitFor();
    await assertGood(t, page, 'webhook');
    await page.getByRole('button', { name: /^Show attempts of/ }).click();
    await page.getByText('no, thank you').waitFor();
    await assertGood(t, page, 'delivery');
    receiver.behave(answering(204));
    await page.getByRole('button', { name: 'Redeliver', exact: true }).click();
    await page.getByRole('dialog').getByText('204').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor();
  });
});

t.test('exports show their history and lag, and are added and stopped', async (t) => {
  const { url } = await startStore(t);
  const { code } = await rest.call(ExportService.method.createExport, exportTo(url), key.key);
  t.equal(code, 'ok');
  await submit({ purl: 'pkg:npm/exported@1.0.0' });
  await app.drain();
  await signedIn(t, '/exports', async ({ page }) => {
    await page.getByRole('table', { name: 'Objects' }).waitFor();
    await page.getByRole('button', { name: 'Test the destination' }).click();
    await page.getByText('The destination can be written.').waitFor();
    await assertGood(t, page, 'exports');
    await page.getByRole('button', { name: 'Add export' }).click();
    await page.getByLabel('bucket', { exact: true }).fill('no-such-bucket');
    await assertGood(t, page, 'add-export');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Stop it' }).click();
    await page.getByText('stopped', { exact: true }).waitFor();
  });
});

t.test('usage against limits, and the audit log with its filters', async (t) => {
  await signedIn(t, '/usage', async ({ page }) => {
    await page.locator('.chart canvas').first().waitFor();
    await page.getByRole('table', { name: 'Usage by day' }).waitFor();
    await page.getByRole('meter').first().waitFor();
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
  const made = await newKey(app, { projectId: key.projectId });
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

t.test('another site cannot act with the session, and nobody can frame the page', async (t) => {
  const { headers } = await app.rest('/dashboard');
  t.match(headers['content-security-policy'], /default-src 'none'.*frame-ancestors 'none'/);
  t.notMatch(headers['content-security-policy'], 'unsafe');
  t.match(headers, {
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache',
  });
  const rpc = `${origin}/attestation.admin.v1.ApiKeyService/RevokeApiKey`;
  const attack = `<form method="post" enctype="text/plain" action="${rpc}"><input name='{"id":"${key.id}","x":"' value='"}'></form>
    <script>fetch('${rpc}', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"id":"${key.id}"}' })
      .catch(() => {}); document.forms[0].submit()</script>`;
  const site = createServer((_request, response) =>
    response.setHeader('content-type', 'text/html').end(attack),
  ).listen(0, '127.0.0.1');
  t.teardown(() => site.close());
  await signedIn(t, '/keys', async ({ page, takeProblems }) => {
    const { port } = site.address() as AddressInfo;
    const foreign = await page.context().newPage();
    const answered = foreign.waitForResponse(
      (response) => response.request().isNavigationRequest() && response.url() === rpc,
    );
    await foreign.goto(`http://127.0.0.1:${port}/`);
    t.not((await answered).status(), 200);
    await page.goto(`${origin}/dashboard/keys`);
    await page.getByRole('heading', { name: 'API keys' }).waitFor();
    takeProblems();
  });
  t.match(await admin.ask(ApiKeyService.method.getApiKey, { id: key.id }), {
    status: 'API_KEY_STATUS_ACTIVE',
  });
});

t.test('errors say what failed, and the page goes on', async (t) => {
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
