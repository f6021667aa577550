/** A real browser for tests of pages: Chromium without a window, one for a test file. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import type { Test } from 'tap';
import { CHROMIUM } from '../foreign/chromium.js';

const WIDTHS = [360, 768, 1920] as const;
/** Slow machines under load are waited for. */
const TIMEOUT_MS = 60_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const AXE_RUN = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(
  ({ id, help, nodes }) => nodes.map(({ target }) => id + ': ' + help + ', at ' + target.join(' '))))`;

export type PageOptions = {
  /** The only origin that the page may send requests to, such as `http://localhost:1234`; `file://` allows none. */
  origin: string;
  width?: number;
  colorScheme?: 'light' | 'dark';
  /** Whether the network is off. */
  isOffline?: boolean;
  context?: BrowserContextOptions;
};

/** A page in a profile of its own, and what it did that no page may do. */
export type GuardedPage = {
  page: Page;
  /**
   * Errors and warnings in the console, uncaught errors, dialogs, and requests to other origins, a line each. A test that causes
   * one takes it out with `takeProblems`.
   */
  problems: string[];
  /** Returns the problems so far and forgets them. */
  takeProblems(): string[];
};

export type TestBrowser = {
  /** Opens an empty page for as long as `use` runs, and asserts that it had no problems. */
  visit(t: Test, options: PageOptions, use: (page: GuardedPage) => Promise<void>): Promise<void>;
};

/** Starts the browser; it ends with the test. */
export async function startBrowser(t: Test): Promise<TestBrowser> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, timeout: TIMEOUT_MS });
  t.teardown(() => browser.close());
  return { visit: (t, options, use) => visit(t, browser, { options, use }) };
}

/** The violations that axe-core finds in the page as it is now, a line each. */
export async function findAccessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(AXE_RUN);
}

/** Writes pictures of the whole page, `<name>-<width>.png`, at the three widths that pages are designed for. */
export async function takePictures(page: Page, { dir, name }: { dir: string; name: string }): Promise<void> {
  const before = page.viewportSize();
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: heightFor(width) });
    await page.screenshot({
      path: join(dir, `${name}-${width}.png`),
      fullPage: true,
      animations: 'disabled',
    });
  }
  if (before !== null) await page.setViewportSize(before);
}

/** Elements that stick out of the page at the right at any of the three widths, a line each. */
export async function findOverflows(page: Page): Promise<string[]> {
  const before = page.viewportSize();
  const found: string[] = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: heightFor(width) });
    const scrolled: number = await page.evaluate('document.documentElement.scrollWidth');
    if (scrolled > width) found.push(`${scrolled} pixels wide at ${width}`);
  }
  if (before !== null) await page.setViewportSize(before);
  return found;
}

type Visit = { options: PageOptions; use: (page: GuardedPage) => Promise<void> };

async function visit(t: Test, browser: Browser, { options, use }: Visit): Promise<void> {
  const context = await openContext(browser, options);
  try {
    const guarded = await openPage(context, options);
    await use(guarded);
    t.strictSame(guarded.problems, [], 'the page did nothing that no page may do');
  } finally {
    await context.close();
  }
}

async function openContext(browser: Browser, options: PageOptions): Promise<BrowserContext> {
  const { width = 1280, colorScheme = 'light', isOffline = false } = options;
  const context = await browser.newContext({
    viewport: { width, height: heightFor(width) },
    colorScheme,
    offline: isOffline,
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
    ...options.context,
  });
  context.setDefaultTimeout(TIMEOUT_MS);
  return context;
}

async function openPage(context: BrowserContext, { origin }: PageOptions): Promise<GuardedPage> {
  const page = await context.newPage();
  const problems: string[] = [];
  const report = (what: string, text: string) => problems.push(`${what}: ${text}`);
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) report('console', message.text());
  });
  page.on('pageerror', (error) => report('uncaught', error.message));
  page.on('dialog', (dialog) => {
    report('dialog', dialog.message());
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!isAllowed(request.url(), origin)) report('request', request.url());
  });
  return { page, problems, takeProblems: () => problems.splice(0) };
}

function isAllowed(url: string, origin: string): boolean {
  const { protocol, origin: of } = new URL(url);
  return protocol === 'data:' || protocol === 'blob:' || of === origin || `${protocol}//` === origin;
}

function heightFor(width: number): number {
  return width < 500 ? 740 : 1000;
}
