import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import { CHANGES } from '../proof/changes.js';
import { ARTIFACT } from '../proof/sample.js';
import { changed, good, trustRoots } from '../proof/verifying.js';
import { creation, METADATA } from '../server/rpc/samples.js';
import { startApp } from '../support/app.js';
import { findAccessibilityProblems, findOverflows, startBrowser, takePictures } from '../support/calling/browser.js';
import { newKey } from '../support/calling/test-keys.js';

/** Where pictures are written to, if anywhere: `PICTURES=DIR npm run test:one -- test/web/verify-page.test.ts`. */
const PICTURES = process.env.PICTURES;

const app = await startApp(t);
const browser = await startBrowser(t);
const key = await newKey(app);
const artifact = Buffer.from('{"passed":1204,"failed":0}\n');

const { id, bundle } = await attest();

async function attest(): Promise<{ id: string; bundle: Buffer }> {
  for (let i = 0; i < 5; i++) await create(Buffer.from(`another ${i}`));
  const made = await create(artifact);
  await app.drain();
  const { body } = await app.rest(`/v1/attestations/${made}/bundle`, { apiKey: key.key });
  return { id: made, bundle: body };
}

async function create(content: Buffer): Promise<string> {
  const body = creation(createHash('sha256').update(content).digest('hex'), METADATA);
  const { json } = await app.rest('/v1/attestations', { apiKey: key.key, body });
  return String(json.id);
}

const file = (name: string, buffer: Buffer) => ({ name, mimeType: 'application/octet-stream', buffer });

async function give(page: Page, label: string, name: string, content: Buffer | object): Promise<void> {
  const buffer = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
  await page.getByLabel(label).setInputFiles(file(name, buffer));
}

/** Waits for the result of the bundle of this name. */
async function waitForVerdict(page: Page, verdict: string, name: string): Promise<void> {
  await page.locator('.basis', { hasText: name }).waitFor();
  await page.locator('.headline', { hasText: verdict }).waitFor();
}

async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await takePictures(page, { dir: PICTURES, name });
}

t.test('a file and its bundle', async (t) => {
  await browser.visit(t, { origin: app.baseUrl }, async ({ page }) => {
    await page.goto(`${app.verifyUrl}/`);
    await page.getByText('publishes now').waitFor();
    await picture(page, 'empty');
    t.strictSame(await findAccessibilityProblems(page), []);
    t.strictSame(await findOverflows(page), []);
    await give(page, 'Choose the file…', 'report.json', artifact);
    await give(page, 'Choose the bundle…', 'report.json.bundle', bundle);
    await waitForVerdict(page, 'Verified', 'bundle');
    await picture(page, 'verified');
    t.strictSame(await findAccessibilityProblems(page), []);
    t.strictSame(await findOverflows(page), []);
  });
  await browser.visit(t, { origin: app.baseUrl, colorScheme: 'dark' }, async ({ page }) => {
    await page.goto(`${app.verifyUrl}/`);
    await give(page, 'Use my own copy…', 'roots.json', trustRoots);
    await give(page, 'Choose the file…', 'report.json', Buffer.from(ARTIFACT));
    await give(page, 'Choose the bundle…', 'good.json', good);
    await waitForVerdict(page, 'Verified', 'good.json');
    await picture(page, 'own');
    t.strictSame(await findAccessibilityProblems(page), []);
    t.strictSame(await findOverflows(page), []);
    await page.getByRole('button', { name: 'Change' }).last().click();
    await give(page, 'Choose the bundle…', 'changed.json', changed(CHANGES[14]![1]));
    await waitForVerdict(page, 'Not verified', 'changed.json');
    await picture(page, 'changed');
    t.strictSame(await findAccessibilityProblems(page), []);
    t.strictSame(await findOverflows(page), []);
  });
  t.ok(id);
});
