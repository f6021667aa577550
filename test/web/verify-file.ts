/** The verify page as one file, with the trust roots of the samples inside. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { trustRoots } from '../proof/verifying.js';
import type { PageOptions, TestBrowser } from '../support/calling/browser.js';
import { runHere } from '../support/calling/run-cli.js';
import { dropPaths } from './verify-driver.js';

/** Drops one after the other: Chromium gives a page from a disk no folder that is dropped with files. */
export async function dropEach(page: Page, paths: readonly string[]): Promise<void> {
  for (const path of paths) await dropPaths(page, [path]);
}

/** Writes the page; returns what opens it without a network for as long as `use` runs. */
export async function writeVerifyFile(t: Test, browser: TestBrowser) {
  const dir = t.testdir();
  const [roots, file] = [join(dir, 'roots.json'), join(dir, 'verify.html')];
  writeFileSync(roots, JSON.stringify(trustRoots));
  t.equal((await runHere(['verify-page', '--trust-roots', roots, '--out', file])).code, 0);
  return async (
    t: Test,
    use: (page: Page) => Promise<void>,
    options: Partial<PageOptions> = {},
  ): Promise<void> =>
    browser.visit(t, { origin: 'file://', isOffline: true, ...options }, async ({ page }) => {
      await page.goto(pathToFileURL(file).href);
      await page.getByText('inside this file').first().waitFor();
      await use(page);
    });
}
