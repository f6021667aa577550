/** The documentation in a real browser, and as it is served. `PICTURES=DIR npm run test:one -- test/web/docs.test.ts` keeps pictures. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { startApp } from '../support/app.js';
import { findAccessibilityProblems, startBrowser, takePictures } from '../support/calling/browser.js';
import { findAnchors } from '../support/source/pages.js';
import { assertWellMade } from './well-made.js';

const app = await startApp(t);
const browser = await startBrowser(t);
const origin = app.baseUrl;
const PICTURES = process.env.PICTURES;
const MAX_PAGE_BYTES = 100_000;

/** A page of each kind. */
const KINDS = [
  '/docs',
  '/docs/quick-start',
  '/docs/settings',
  '/docs/api',
  '/docs/api/createAttestation',
] as const;

type Found = { links: string[]; ids: Set<string>; text: string };

async function read(path: string): Promise<Found> {
  const { status, headers, body } = await app.rest(path);
  t.equal(status, 200, path);
  const text = body.toString();
  if (!/^text\/html/.test(headers['content-type'] ?? '')) return { links: [], ids: new Set(), text };
  const found = (name: string) =>
    [...text.matchAll(new RegExp(`<[^>]* ${name}="([^"]*)"`, 'g'))].map(([, value = '']) => value);
  return { links: [...found('href'), ...found('src')], ids: new Set(found('id')), text };
}

/** Reads a page and all that its links lead to on this server. */
async function walk(start: string): Promise<Map<string, Found>> {
  const pages = new Map<string, Found>();
  const waiting = [start];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(path)) continue;
    const page = await read(path);
    pages.set(path, page);
    if (!path.startsWith('/docs')) continue;
    const targets = page.links.map((link) => new URL(link, `${origin}${path}`));
    waiting.push(...targets.filter((url) => url.origin === origin).map(({ pathname }) => pathname));
  }
  return pages;
}

t.test('every link of every page leads to a page and to an anchor in it', async (t) => {
  const pages = await walk('/docs');
  const broken = [...pages].flatMap(([path, { links }]) =>
    path.startsWith('/docs')
      ? links.filter((link) => {
          const { origin: of, pathname, hash } = new URL(link, `${origin}${path}`);
          return (
            of === origin && hash !== '' && !pages.get(pathname)?.ids.has(decodeURIComponent(hash.slice(1)))
          );
        })
      : [],
  );
  t.strictSame(broken, []);
  t.ok(pages.size > 70, `${pages.size} pages and files`);
  for (const [path, { text, ids }] of pages) {
    if (!path.startsWith('/docs')) continue;
    // That page is about the settings that these are.
    const unnamed = path === '/docs/settings' ? /-url\.invalid/ : /-url\.invalid|\{(?:base|verify)_url\}/;
    t.notMatch(text, unnamed, `${path} has the addresses of this service`);
    t.notMatch(
      text,
      /<script(?![^>]* src="\/)|<style|\son\w+=|\sstyle=/,
      `${path} has no inline script or style`,
    );
    t.equal(ids.size, [...text.matchAll(/<[^>]* id="/g)].length, `${path} has each id once`);
  }
  for (const name of ['verifying', 'witnesses', 'client']) {
    const anchors = findAnchors(readFileSync(`docs/${name}.md`, 'utf8'));
    const { ids } = pages.get(`/docs/${name}`) ?? { ids: new Set() };
    t.strictSame(
      anchors.filter((anchor) => !ids.has(anchor)),
      [],
      `${name} has the anchors of GitHub`,
    );
  }
});

t.test('pages of each kind are accessible in both themes, and small', async (t) => {
  for (const path of KINDS) {
    await browser.visit(t, { origin }, async ({ page }) => {
      let bytes = 0;
      page.on('requestfinished', async (request) => {
        const { responseBodySize, responseHeadersSize } = await request.sizes();
        bytes += responseBodySize + responseHeadersSize;
      });
      await page.goto(`${origin}${path}`);
      const name = path.slice(1).replaceAll('/', '-');
      await assertWellMade(t, page, `${name}-light`);
      t.ok(bytes > 0 && bytes < MAX_PAGE_BYTES, `${path}: ${bytes} bytes`);
      await page.emulateMedia({ colorScheme: 'dark' });
      t.strictSame(await findAccessibilityProblems(page), [], `${path} in the dark`);
      if (PICTURES !== undefined) await takePictures(page, { dir: PICTURES, name: `${name}-dark` });
    });
  }
});

t.test('the search finds a section by the keyboard, and loads its index when it is opened', async (t) => {
  await browser.visit(t, { origin }, async ({ page }) => {
    const loaded: string[] = [];
    page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
    await page.goto(`${origin}/docs`);
    await page.getByRole('button', { name: 'Search' }).waitFor();
    t.notOk(loaded.includes('/docs/search.json'));
    await page.keyboard.press('/');
    await page.getByRole('searchbox', { name: 'Search' }).fill('rotate secret');
    await page.getByRole('link', { name: 'Rotate the secret' }).first().waitFor();
    t.strictSame(await findAccessibilityProblems(page), [], 'accessible');
    if (PICTURES !== undefined) await takePictures(page, { dir: PICTURES, name: 'search' });
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(`${origin}/docs/api/rotateWebhookSecret`);
  });
});

t.test('theme and language stay as chosen, code is copied, anchors of the reference lead on', async (t) => {
  const context = { permissions: ['clipboard-read', 'clipboard-write'] };
  await browser.visit(t, { origin, context }, async ({ page }) => {
    await page.goto(`${origin}/docs#createWebhook`);
    await page.waitForURL(`${origin}/docs/api/createWebhook`);
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await ground();
    await page.getByRole('button', { name: 'Theme: system' }).click();
    t.equal(await ground(), light);
    await page.getByRole('button', { name: 'Theme: light' }).click();
    const dark = await ground();
    t.not(dark, light);
    await page.getByRole('radio', { name: 'Python' }).check();
    await page.goto(`${origin}/docs/api/getWebhook`);
    t.equal(await ground(), dark, 'on the next page');
    const code = page.locator('.sample[data-language="python"]');
    await code.getByRole('button', { name: 'Copy' }).click();
    await code.getByRole('button', { name: 'Copied' }).waitFor();
    t.match(await page.evaluate('navigator.clipboard.readText()'), /^import os\n.*requests\.get\(/s);
  });
});

t.test('without scripts every page can be read, and the menu of small windows opens', async (t) => {
  await browser.visit(t, { origin, width: 360, context: { javaScriptEnabled: false } }, async ({ page }) => {
    await page.goto(`${origin}/docs/api/createAttestation`);
    await page.getByText('TypeScript', { exact: true }).click();
    await page.getByText("from '@attestation-service/client'").waitFor();
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Settings' }).click();
    await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor();
  });
});
