/** What the server does about the verify page: its files and badges, and what it forbids. */
import type { Test } from 'tap';
import type { App } from '../support/app.js';
import type { TestBrowser } from '../support/calling/browser.js';
import type { TestKey } from '../support/calling/test-keys.js';
import { assertWellMade } from './well-made.js';

type Served = {
  app: App;
  browser: TestBrowser;
  /** A submission with a public bundle. */
  id: string;
  /** Keys of a project that is looked up in public, and of one that is not. */
  open: TestKey;
  closed: TestKey;
  create: (by: TestKey, content: Buffer) => Promise<string>;
};

const MAX_FIRST_PAGE_BYTES = 250 * 1024;

/** Tests of how the verify page is served. */
export function testServing(t: Test, { app, browser, id, open, closed, create }: Served): void {
  t.test('the page is small, cached, and allowed nothing that it does not need', async (t) => {
    const page = await app.rest('/verify/', { headers: { 'accept-encoding': 'gzip' } });
    t.match(page, {
      status: 200,
      headers: {
        'content-type': /^text\/html/,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      },
    });
    const policy = page.headers['content-security-policy'] ?? '';
    for (const rule of [
      "default-src 'none'",
      "script-src 'self';",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ]) {
      t.ok(policy.includes(rule), rule);
    }
    t.notMatch(policy, /unsafe|\*/);
    const html = (await app.rest('/verify/')).body.toString();
    t.notMatch(html, /<script(?![^>]* src=)|<style|\son[a-z]+=|style=/, 'no inline script or style');
    const assets = [...html.matchAll(/"\.(\/assets\/[^"]+)"/g)].map(([, path]) => `/verify${path}`);
    let bytes = page.body.length;
    for (const path of assets) {
      const asset = await app.rest(path, { headers: { 'accept-encoding': 'gzip' } });
      bytes += asset.body.length;
      t.match(asset, { status: 200, headers: { 'cache-control': /immutable/, 'content-encoding': 'gzip' } });
      const again = await app.rest(path, { headers: { 'if-none-match': asset.headers.etag ?? '' } });
      t.equal(again.status, 304);
    }
    t.ok(assets.length >= 2 && bytes < MAX_FIRST_PAGE_BYTES, `${bytes} bytes`);
    for (const path of [
      'x.js',
      '..%2findex.html',
      '%2e%2e/index.html',
      'index.html',
      `${'a'.repeat(2000)}.js`,
    ]) {
      t.equal((await app.rest(`/verify/assets/${path}`)).status, 404, path);
    }
    t.equal((await app.rest('/verify/', { method: 'POST', body: {} })).status, 405);
  });

  t.test('a badge says when and by whom, and one who is not public has that of nobody', async (t) => {
    const hidden = await create(closed, Buffer.from('not for everybody'));
    await app.drain();
    const badge = await app.rest(`/verify/badge/${id}.svg`);
    const text = badge.body.toString();
    t.match(badge.headers, {
      'content-type': 'image/svg+xml; charset=utf-8',
      'content-security-policy': /default-src 'none'/,
      'x-content-type-options': 'nosniff',
    });
    t.match(
      text,
      /<title>This artifact was attested under sub_\w+ by the project prj_\w+ and existed no later than /,
    );
    t.match(text, />\d{4}-\d\d-\d\d by prj_.{4}….{4}</);
    t.notMatch(text, /script|onerror|\u202e/);
    const again = await app.rest(`/verify/badge/${id}.svg`, {
      headers: { 'if-none-match': badge.headers.etag ?? '' },
    });
    t.equal(again.status, 304);
    const nobody = await app.rest('/verify/badge/sub_01M82AS0YJYCMJPYA3A31PK0JK.svg');
    t.match(nobody, { status: 404, headers: { 'content-type': 'image/svg+xml; charset=utf-8' } });
    t.match(nobody.body.toString(), />unknown</);
    for (const name of [`${hidden}.svg`, id, `${id}.png`, '.svg', '%00.svg', `${'x'.repeat(60)}.svg`]) {
      const { status, body } = await app.rest(`/verify/badge/${name}`);
      t.strictSame([status, body], [404, nobody.body], name.slice(0, 40));
    }
    t.equal((await app.rest(`/verify/bundle/${hidden}`)).status, 404);
    app.witnesses[0]!.isBroken = true;
    const partial = await create(open, Buffer.from('not witnessed'));
    t.equal((await app.rest(`/verify/badge/${partial}.svg`)).status, 404);
    app.witnesses[0]!.isBroken = false;
    await browser.visit(t, { origin: app.baseUrl }, async ({ page, takeProblems }) => {
      await page.goto(`${app.verifyUrl}/#id=${hidden}`);
      await page.getByText('There is no public bundle of this submission').waitFor();
      await assertWellMade(t, page, 'no-bundle');
      t.match(takeProblems(), [/404/]);
    });
  });

  t.test('no other site can put the page into a frame', async (t) => {
    await browser.visit(t, { origin: app.baseUrl }, async ({ page, takeProblems }) => {
      const refused = page.waitForEvent('console', (message) => message.text().includes('frame-ancestors'));
      await page.setContent(`<iframe src="${app.verifyUrl}/"></iframe>`);
      await refused;
      t.match(takeProblems().join('\n'), /frame-ancestors/);
    });
  });
}
