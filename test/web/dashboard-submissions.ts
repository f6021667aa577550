/** Submissions in the dashboard: what strangers put in, and what other sites try. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import { ApiKeyService } from '../../gen/attestation/admin/v1/api_keys_pb.js';
import { assertGood, type DashboardScene } from './dashboard-scene.js';

const HOSTILE = '<img src=x onerror="window.wasRun=1"><script>window.wasRun=1</script>\u202Egnp.exe';

/** Tests of submissions in the dashboard. */
export function testSubmissions(t: Test, { app, admin, key, signedIn, submit }: DashboardScene): void {
  const origin = app.baseUrl;

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
      await page.getByLabel('Find by id, SHA-256 or build').fill(String(json.id));
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'Submission', exact: true }).waitFor();
    });
  });

  t.test('a build finds its submissions', async (t) => {
    const metadata = { schema: 'purl', purl: 'pkg:npm/built@1.0.0' };
    const body = { artifact: { sha256: 'ab'.repeat(32) }, metadata, build: 'ci-4711 <b>' };
    const { json } = await app.rest('/v1/attestations', { apiKey: key.key, body });
    await signedIn(t, '/submissions', async ({ page }) => {
      const find = page.getByLabel('Find by id, SHA-256 or build');
      await find.fill('sub_short');
      await page.keyboard.press('Enter');
      await page.getByText('An id is sub_ and 26 characters').waitFor();
      await find.fill('ci-4711 <b>');
      await page.keyboard.press('Enter');
      await page.getByRole('article', { name: String(json.id) }).waitFor();
      await page.getByRole('button', { name: 'Show all' }).waitFor();
      t.equal(await page.getByRole('article').count(), 1);
      await find.fill(String(json.id));
      await page.keyboard.press('Enter');
      await page.getByText('ci-4711 <b>', { exact: true }).waitFor();
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
}
