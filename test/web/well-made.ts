import { mkdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { findUnspoken } from '../support/calling/accessibility.js';
import { findAccessibilityProblems, findOverflows, takePictures } from '../support/calling/browser.js';

/** Where pictures are written to, if anywhere: `PICTURES=DIR npm run test:one -- test/web/verify-page.test.ts`. */
const PICTURES = process.env.PICTURES;

/** Asserts what holds of every state of the verify page, and takes pictures of it. */
export async function assertWellMade(t: Test, page: Page, name: string): Promise<void> {
  t.strictSame(await findAccessibilityProblems(page), [], `${name}: accessible`);
  t.strictSame(await findUnspoken(page), [], `${name}: can be spoken`);
  t.strictSame(await findOverflows(page), [], `${name}: as wide as the window`);
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await takePictures(page, { dir: PICTURES, name });
}
