/** The verify page in a real browser: as it is served, and as a file without a network. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { makeProject } from '../../src/server/process/first-keys.js';
import { ARTIFACT } from '../proof/sample.js';
import { CHANGES } from '../proof/verify/changes.js';
import { FORGERIES } from '../proof/verify/forgeries/forgeries.js';
import { futureBundles } from '../proof/verify/future.js';
import { mine, STATED } from '../proof/verify/public-sample.js';
import { changed, failures, good, other, rootsOf, trustRoots, verify } from '../proof/verifying.js';
import { startApp } from '../support/app.js';
import { readAnnouncements } from '../support/calling/accessibility.js';
import { startBrowser } from '../support/calling/browser.js';
import { runHere } from '../support/calling/run-cli.js';
import { newKey, type TestKey } from '../support/calling/test-keys.js';
import { isLong } from '../support/long.js';
import { until } from '../support/until.js';
import {
  choose,
  drop,
  hostileFragments,
  readSteps,
  readVerdict,
  replaceBundle,
  tabTo,
} from './verify-driver.js';
import { testServing } from './verify-page-served.js';
import { assertWellMade } from './well-made.js';

const WORDS = { passed: 'Passed', failed: 'Failed', not_checked: 'Not checked' };
const HEADLINES = {
  verified: 'Verified',
  not_verified: 'Not verified',
  could_not_check: 'Not fully checked',
};
const MAX_FILE_BYTES = 150 * 1024;

/** What strangers would like browsers to run, or readers to misread. */
const MARKUP = '<img src=x onerror=alert(1)>\u202eexe.nosj';

const app = await startApp(t, { env: { PUBLIC_LOOKUP: 'true' } });
const browser = await startBrowser(t);
const key = await newKey(app, { projectId: await makeProject(app.pool, MARKUP) });
const closed = await newKey(app);
await app.pool`UPDATE project SET public_lookup = false WHERE id = ${closed.projectId}`;
const artifact = Buffer.from('{"passed":1204,"failed":0}\n');
const { id, bundle } = await attest();
const dir = t.testdir();

async function attest(): Promise<{ id: string; bundle: Buffer }> {
  for (let i = 0; i < 5; i++) await create(key, Buffer.from(`another ${i}`));
  const id = await create(key, artifact);
  await app.drain();
  return { id, bundle: (await app.rest(`/v1/attestations/${id}/bundle`, { apiKey: key.key })).body };
}

async function create(by: TestKey, content: Buffer): Promise<string> {
  const metadata = { schema: 'purl', [MARKUP]: MARKUP };
  const sha256 = createHash('sha256').update(content).digest('hex');
  const body = { artifact: { sha256 }, metadata, validation: 'lenient' };
  const { json } = await app.rest('/v1/attestations', { apiKey: by.key, body });
  return String(json.id);
}

/** One of each code, or all in a long run. */
const SHOWN = CHANGES.filter(([code], i) => isLong || CHANGES.findIndex(([other]) => other === code) === i);

t.test('a dropped file and its bundle are verified, and a link shares the proof', async (t) => {
  await browser.visit(t, { origin: app.baseUrl }, async ({ page }) => {
    await page.goto(`${app.verifyUrl}/`);
    await page.getByText('Nothing is checked yet').waitFor();
    await page.getByText('publishes now').waitFor();
    await assertWellMade(t, page, 'empty');
    await drop(page, 'main', [
      { name: 'bundle.json', content: bundle },
      { name: 'report.json', content: artifact },
    ]);
    const { headline, summary } = await readVerdict(page, 'bundle.json');
    t.equal(headline, 'Verified');
    t.match(
      summary,
      new RegExp(`by the project ${key.projectId} and existed no later than .*Z according to self-tsa`),
    );
    t.ok((await readSteps(page)).every(({ word }) => word === 'Passed'));
    t.match(await readAnnouncements(page), [`Verified. ${summary}`], 'screen readers say it');
    await page.getByText('The computed root is the one in the checkpoint').waitFor();
    await page.getByText('the operator’s own clock, nobody else’s').waitFor();
    const time = page.locator('.witnesses time').last();
    t.match(await time.getAttribute('title'), /^\d{4}-\d\d-\d\dT[\d:.]+Z \(UTC\)$/);
    t.match(await time.textContent(), /CES?T/, 'in local time');
    await assertWellMade(t, page, 'verified');
    const link = await page.getByRole('link', { name: 'Open the link' }).getAttribute('href');
    await page.goto('about:blank');
    await page.goto(link ?? '');
    t.equal((await readVerdict(page, 'bundle in the link')).headline, 'Not fully checked');
    const steps = await readSteps(page);
    t.match(steps[1], { name: 'statement', status: 'not_checked', word: 'Not checked' });
    await assertWellMade(t, page, 'without-file');
    await choose(page, 'Choose the file…', { name: 'report.json', content: artifact });
    await page.locator('.headline', { hasText: /^Verified$/ }).waitFor();
  });
});

t.test('with the keyboard alone', async (t) => {
  await browser.visit(t, { origin: app.baseUrl, width: 360, colorScheme: 'dark' }, async ({ page }) => {
    await page.goto(`${app.verifyUrl}/`);
    await page.getByText('publishes now').waitFor();
    await tabTo(page, 'or its SHA-256');
    await page.keyboard.type(`SHA256:${createHash('sha256').update(artifact).digest('hex').toUpperCase()}`);
    await page.keyboard.press('Enter');
    await page.getByText('a file with this SHA-256').waitFor();
    // Chromium opens none once the key is older than 5 s, as it can be on a machine under load.
    const chooser = await until('the files are shown', async () => {
      await tabTo(page, 'Choose the bundle…');
      const shown = page.waitForEvent('filechooser', { timeout: 10_000 }).catch(() => undefined);
      await page.keyboard.press('Space');
      return shown;
    });
    await chooser.setFiles({ name: 'bundle.json', mimeType: 'application/json', buffer: bundle });
    t.equal((await readVerdict(page, 'bundle.json')).headline, 'Verified');
    await tabTo(page, 'What is in them');
    await page.keyboard.press('Enter');
    await page.getByText('chains of time-stamping authorities: 1').waitFor();
    await assertWellMade(t, page, 'dark');
  });
});

t.test(
  'the page as one file verifies with the network off, and catches every change at its step',
  async (t) => {
    const roots = join(dir, 'roots.json');
    const file = join(dir, 'verify.html');
    const hostile = { ...trustRoots, note: '</script><script>alert(1)</script><!--' };
    writeFileSync(roots, JSON.stringify(hostile));
    t.match(await runHere(['verify-page', '--trust-roots', roots, '--out', file]), {
      code: 0,
      stderr: 'with the trust roots of',
    });
    t.ok(readFileSync(file).length <= MAX_FILE_BYTES, `${readFileSync(file).length} bytes`);
    const many = { ...trustRoots, note: randomBytes(MAX_FILE_BYTES).toString('base64') };
    writeFileSync(roots, JSON.stringify(many));
    t.match(await runHere(['verify-page', '--trust-roots', roots, '--out', join(dir, 'large.html')]), {
      code: 0,
      stderr: `bytes, more than ${MAX_FILE_BYTES}`,
    });
    await browser.visit(t, { origin: 'file://', isOffline: true }, async ({ page }) => {
      await page.goto(pathToFileURL(file).href);
      await page.getByText('inside this file').first().waitFor();
      await choose(page, 'Choose the file…', { name: 'artifact', content: ARTIFACT });
      await replaceBundle(page, { name: 'good.json', content: good });
      t.match(await readVerdict(page, 'good.json'), { headline: 'Verified' });
      await assertWellMade(t, page, 'file');
      for (const [i, [code, change]] of SHOWN.entries()) {
        const content = changed(change);
        const expected = await verify(content);
        const name = `change ${i}`;
        await replaceBundle(page, { name, content });
        const { headline, summary } = await readVerdict(page, name);
        t.strictSame([headline, summary], ['Not verified', expected.summary], code);
        const steps = expected.steps.map(({ name, status }) => ({ name, status, word: WORDS[status] }));
        t.strictSame(await readSteps(page), steps, `${code}: the steps are those of the verifier`);
        for (const failure of failures(expected))
          t.ok(await page.locator('.failed .code', { hasText: failure }).first().isVisible());
        if (code === 'inclusion.invalid')
          await page.getByText(/not the one in the checkpoint|is not the length/).waitFor();
      }
      await assertWellMade(t, page, 'changed');
      for (const { what, verdict, bundle } of await futureBundles()) {
        const expected = await verify(bundle);
        await replaceBundle(page, { name: what, content: bundle });
        const { headline, summary } = await readVerdict(page, what);
        t.strictSame([headline, summary], [HEADLINES[verdict], expected.summary], what);
      }
      await assertWellMade(t, page, 'future');
      await replaceBundle(page, { name: 'public.json', content: mine });
      t.equal((await readVerdict(page, 'public.json')).headline, 'Verified');
      await page.getByText(STATED.identity.subject, { exact: true }).waitFor();
      await page.getByText('Predicate', { exact: true }).click();
      await page.getByText('"result": "FAILED"').waitFor();
      await assertWellMade(t, page, 'public');
      for (const { what, bundle } of FORGERIES.filter(({ artifact }) => artifact === undefined)) {
        const expected = await verify(bundle);
        await replaceBundle(page, { name: what, content: bundle });
        const { headline, summary } = await readVerdict(page, what);
        t.strictSame([headline, summary], [HEADLINES.not_verified, expected.summary], what);
      }
      await replaceBundle(page, { name: 'good.json', content: good });
      await choose(page, 'Use my own copy…', { name: 'others.json', content: rootsOf(other.service) });
      await page.getByText('your own trust roots, others.json').waitFor();
      t.equal((await readVerdict(page, 'good.json')).headline, 'Not verified', 'under the keys of others');
      await choose(page, 'Use my own copy…', { name: 'no.json', content: { hello: 'world' } });
      await page.getByText('no trust roots that can be used: the document names no log').first().waitFor();
    });
  },
);

t.test('hostile input is shown as text within bounds, or rejected with an explanation', async (t) => {
  await browser.visit(t, { origin: app.baseUrl }, async ({ page, takeProblems }) => {
    await page.goto(`${app.verifyUrl}/`);
    await page.getByText('publishes now').waitFor();
    await drop(page, '[data-takes=artifact]', [{ name: MARKUP, content: artifact }]);
    await page.getByText('<img src=x onerror=alert(1)>\ufffdexe.nosj').waitFor();
    const evil = changed((b) => {
      Object.assign(b, { [MARKUP]: MARKUP });
      Object.assign(b.witnesses[1]!.detail, { [MARKUP]: MARKUP });
      Object.assign(b.witnesses[0]!, { name: MARKUP });
    });
    await replaceBundle(page, { name: MARKUP, content: evil });
    t.equal((await readVerdict(page, 'exe.nosj')).headline, 'Not verified');
    t.equal(await page.locator('main img, main script').count(), 0);
    t.notMatch(await page.locator('main').textContent(), /[\u202a-\u202e\u2066-\u2069]/);
    await assertWellMade(t, page, 'hostile');
    const huge = join(dir, 'huge.json');
    writeFileSync(huge, '');
    truncateSync(huge, 50_000_000);
    await page.locator('[data-takes=bundle]').getByRole('button', { name: 'Change' }).click();
    await page.getByLabel('Choose the bundle…').setInputFiles(huge);
    await page.getByText('huge.json has 50.0 MB, and a proof bundle has at most 4.2 MB').waitFor();
    await assertWellMade(t, page, 'too-large');
    await drop(
      page,
      'main',
      [1, 2, 3, 4].map((i) => ({ name: `${i}`, content: artifact })),
    );
    await page.getByText('4 files were dropped').waitFor();
    await page.getByLabel('or a submission ID').fill('sub_01M82AS0YJYCMJPYA3A31PK0JK');
    await page.getByRole('button', { name: 'Look up' }).click();
    await page.getByText('There is no public bundle of this submission').waitFor();
    t.match(takeProblems(), [/404/]);
    for (const [text, reason] of hostileFragments(bundle)) {
      await page.evaluate(`location.hash = ${JSON.stringify(text)}`);
      await page.getByText(reason).first().waitFor();
      await page.evaluate(`location.hash = ''`);
    }
  });
});

t.test('a public proof is listed by its file', async (t) => {
  await browser.visit(t, { origin: app.baseUrl }, async ({ page }) => {
    await page.goto(`${app.verifyUrl}/`);
    await drop(page, 'main', [{ name: 'report.json', content: artifact }]);
    await page.getByRole('button', { name: 'Find its bundle' }).click();
    t.equal(
      (await readVerdict(page, `bundle of ${id}`)).headline,
      'Verified',
      'that of the closed project is not found',
    );
  });
});

t.test('trust roots of a slow server do not replace the reader’s own copy', async (t) => {
  await browser.visit(t, { origin: app.baseUrl }, async ({ page }) => {
    const requested = page.waitForRequest('**/trust_roots.json');
    let answer = () => {};
    const isOwn = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/trust_roots.json', async (route) => {
      await isOwn;
      await route.continue();
    });
    await page.goto(`${app.verifyUrl}/`);
    await requested;
    await choose(page, 'Use my own copy…', { name: 'own.json', content: trustRoots });
    await page.getByText('Your own copy').waitFor();
    const answered = page.waitForResponse('**/trust_roots.json');
    answer();
    await (await answered).finished();
    await page.evaluate('new Promise(requestAnimationFrame)');
    await page.getByText('Your own copy').waitFor();
  });
});

testServing(t, { app, browser, id, open: key, closed, create });
