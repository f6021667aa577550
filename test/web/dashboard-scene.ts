/** The dashboard of a running service, in a browser that is signed in. */
import { mkdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { type App, startApp } from '../support/app.js';
import { findUnspoken } from '../support/calling/accessibility.js';
import { type Admin, adminOf } from '../support/calling/admin.js';
import {
  findAccessibilityProblems,
  findOverflows,
  type GuardedPage,
  type PageOptions,
  startBrowser,
  type TestBrowser,
  takePictures,
} from '../support/calling/browser.js';
import { newLink } from '../support/calling/sessions.js';
import { newKey, type TestKey } from '../support/calling/test-keys.js';
import { isLong } from '../support/long.js';

export type DashboardScene = {
  app: App;
  browser: TestBrowser;
  admin: Admin;
  /** A key of the project that browsers are signed in to. */
  key: TestKey;
  /** Opens a page of the dashboard in a browser that is signed in to the project. */
  signedIn: Visit;
  /** The same for the operator, who has chosen the project. */
  asOperator: Visit;
  /** Submits metadata of the schema `purl`. @returns the submission's id */
  submit(metadata: Record<string, string>, more?: object, apiKey?: string): Promise<string>;
};

type Visit = (
  t: Test,
  path: string,
  use: (guarded: GuardedPage) => Promise<void>,
  options?: Partial<PageOptions>,
) => Promise<void>;

/** Where pictures are kept, if anywhere. */
const PICTURES = process.env.PICTURES;

/** Beside the light one; dialogs are made of the same parts. */
const SEEN_IN_THE_DARK =
  /^(?:sign-in|keys|submission|batches|webhook|exports|usage|audit|create-key|project)$/;

/** Starts service and browser; they end with the test. */
export async function setDashboardScene(t: Test): Promise<DashboardScene> {
  const app = await startApp(t);
  const browser = await startBrowser(t);
  const admin = adminOf(app);
  const key = await newKey(app);
  const origin = app.baseUrl;
  const open = async (guarded: GuardedPage, path: string) => {
    const { page } = guarded;
    await page.getByRole('heading', { name: 'Submissions' }).waitFor();
    guarded.takeProblems();
    await page.goto(`${origin}/dashboard${path}`);
    page.setDefaultTimeout(20_000);
  };
  return {
    app,
    browser,
    admin,
    key,
    async signedIn(t, path, use, options = {}) {
      const link = await newLink(app, key.projectId);
      await browser.visit(t, { ...options, origin }, async (guarded) => {
        await guarded.page.goto(`${origin}/dashboard/sign-in#${link}`);
        await guarded.page.getByRole('button', { name: 'Sign in to the project' }).click();
        await open(guarded, path);
        await use(guarded);
      });
    },
    async asOperator(t, path, use, options = {}) {
      await browser.visit(t, { ...options, origin }, async (guarded) => {
        const { page } = guarded;
        await page.goto(`${origin}/dashboard`);
        await page.evaluate(`sessionStorage.setItem('scope', 'live ${key.projectId}')`);
        await page.getByLabel('Admin token').fill(admin.token);
        await page.getByRole('button', { name: 'Sign in' }).click();
        await open(guarded, path);
        await use(guarded);
      });
    },
    async submit(metadata, more = {}, apiKey = key.key) {
      const body = {
        artifact: { sha256: 'cd'.repeat(32) },
        metadata: { schema: 'purl', ...metadata },
        ...more,
      };
      const { status, json } = await app.rest('/v1/attestations', { apiKey, body });
      t.equal(status, 201);
      return String(json.id);
    },
  };
}

/** Asserts what holds of every page, and keeps pictures of it. */
export async function assertGood(t: Test, page: Page, name: string): Promise<void> {
  t.same(await findAccessibilityProblems(page), [], `${name} is accessible`);
  t.same(await findUnspoken(page), [], `${name} can be spoken`);
  if (isLong ? SEEN_IN_THE_DARK.test(name) : name === 'submission') {
    await page.emulateMedia({ colorScheme: 'dark' });
    t.same(await findAccessibilityProblems(page), [], `${name} is accessible in the dark`);
    if (PICTURES !== undefined) await takePictures(page, { dir: PICTURES, name: `${name}-dark` });
  }
  await page.emulateMedia({ colorScheme: 'light' });
  t.same(await findOverflows(page), [], `${name} fits`);
  if (PICTURES === undefined) return;
  mkdirSync(PICTURES, { recursive: true });
  await takePictures(page, { dir: PICTURES, name });
}
