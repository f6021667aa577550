/** What tests of the dashboard's sessions have in common: a service, and two ways to sign in to it. */
import type { Test } from 'tap';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { newLink } from '../../support/calling/sessions.js';

/** Starts a service of two API processes until the test ends. */
export async function setSessionScene(t: Test) {
  const app = await startApp(t, { apis: 2, env: { TRUSTED_PROXIES: 'none' } });
  const admin = adminOf(app);
  return {
    app,
    admin,
    byToken: { credential: { case: 'adminToken' as const, value: admin.token } },
    /** A new link to a project. */
    byLink: async (projectId: string) => ({
      credential: { case: 'link' as const, value: await newLink(app, projectId) },
    }),
  };
}
