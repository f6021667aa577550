/** What each role sees in the dashboard: the buttons of the RPCs that the service lets it call, and no others. */
import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import type { Page } from 'playwright-core';
import t from 'tap';
import { ApiKeyService } from '../../gen/attestation/admin/v1/api_keys_pb.js';
import { PersonService } from '../../gen/attestation/admin/v1/people_pb.js';
import { ProjectService } from '../../gen/attestation/admin/v1/projects_pb.js';
import { SessionService } from '../../gen/attestation/admin/v1/sessions_pb.js';
import { TrustRuleService } from '../../gen/attestation/admin/v1/trust_rules_pb.js';
import { Role } from '../../gen/attestation/options/v1/options_pb.js';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { ExportService } from '../../gen/attestation/v1/exports_pb.js';
import { WebhookService } from '../../gen/attestation/v1/webhooks_pb.js';
import { startApp } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import { startBrowser } from '../support/calling/browser.js';
import { type Browser, newBrowser } from '../support/calling/sessions.js';
import { newKey } from '../support/calling/test-keys.js';
import { signInAs, startLoginProvider } from '../support/identities/login-provider.js';
import { assertGood } from './dashboard-scene.js';

const provider = await startLoginProvider(t);
const app = await startApp(t, {
  isWithoutWorker: true,
  env: { ...provider.env, OIDC_OPERATORS: 'groups=platform' },
});
provider.register(app);
const admin = adminOf(app);
const key = await newKey(app);
const { projectId } = key;
for (const [account, role] of [
  ['viewer', Role.VIEWER],
  ['member', Role.MEMBER],
  ['admin', Role.ADMIN],
] as const) {
  provider.accounts.set(account, { name: account, groups: [account] });
  await admin.ask(PersonService.method.createRoleRule, { projectId, role, conditions: { groups: account } });
}
provider.accounts.set('platform', { name: 'platform', groups: ['platform'] });
await admin.ask(PersonService.method.createInvitation, { projectId, role: Role.VIEWER });
await admin.ask(TrustRuleService.method.createTrustRule, {
  projectId,
  environment: key.environment,
  issuer: 'https://ci.example.com',
  conditions: { repository: 'acme/app' },
  scopes: ['attestations:read'],
});
const make = async (path: string, body: JsonObject) => {
  const { status, json } = await app.rest(path, { apiKey: key.key, body });
  if (status !== 201) throw new Error(`${path} answered ${status}`);
  return String(json.id);
};
const submission = await make('/v1/attestations', {
  artifact: { sha256: 'cd'.repeat(32) },
  metadata: { schema: 'purl', purl: 'pkg:npm/roles@1.0.0' },
});
const webhook = await make('/v1/webhooks', {
  url: 'https://hooks.example.com/x',
  events: ['attestation.witnessed'],
});
const browser = await startBrowser(t);

/** The buttons of each page, by their names, and the RPC that each leads to. */
const PAGES: Record<string, [name: RegExp, method: DescMethodUnary][]> = {
  '/keys': [
    [/^Create key$/, ApiKeyService.method.createApiKey],
    [/^Rotate /, ApiKeyService.method.rotateApiKey],
    [/^Revoke /, ApiKeyService.method.revokeApiKey],
    [/^Add rule$/, TrustRuleService.method.createTrustRule],
    [/^Remove /, TrustRuleService.method.removeTrustRule],
  ],
  '/people': [
    [/^Invite$/, PersonService.method.createInvitation],
    [/^Change role of /, PersonService.method.setRole],
    [/^Remove /, PersonService.method.removeMember],
    [/^Take back /, PersonService.method.deleteInvitation],
    [/^Add role rule$/, PersonService.method.createRoleRule],
    [/^Delete /, PersonService.method.deleteRoleRule],
  ],
  '/webhooks': [[/^Add webhook$/, WebhookService.method.createWebhook]],
  [`/webhooks/${webhook}`]: [
    [/^Send a test event$/, WebhookService.method.testWebhook],
    [/^Redeliver what failed/, WebhookService.method.redeliverFailedWebhookDeliveries],
    [/^Disable$/, WebhookService.method.updateWebhook],
    [/^New secret$/, WebhookService.method.rotateWebhookSecret],
    [/^Delete$/, WebhookService.method.deleteWebhook],
  ],
  '/exports': [[/^Add export$/, ExportService.method.createExport]],
  [`/submissions/${submission}`]: [[/^Erase metadata$/, AttestationService.method.deleteAttestation]],
  '/project': [
    [/^Save$/, ProjectService.method.updateProject],
    [/^Make a sign-in link$/, SessionService.method.createSignInLink],
    [/^End all sessions$/, SessionService.method.revokeSessions],
    [/^End ses_/, SessionService.method.endSession],
  ],
  '/submissions': [],
  '/batches': [],
  '/usage': [],
  '/audit': [],
};
/** Buttons that change nothing of the project. */
const READING =
  /^(?:Find|.* bundle|C2SP tlog-proof|COSE receipt|OpenTimestamps|Copy.*|Download.*|Close|Clear|By day|By hour|Show.*|Load.*)$/;

/** Whether the service lets a session call an RPC. The input names what is not there, so nothing is changed. */
async function isAllowed(session: Browser, method: DescMethodUnary): Promise<boolean> {
  const absent = { id: 'none', personId: 'none' };
  const named = method === SessionService.method.revokeSessions ? { projectId: 'none' } : absent;
  const { code } = await session.call(method, named);
  t.not(code, 'auth.invalid_key', `${method.name} is called with a session`);
  return code !== 'auth.insufficient_scope';
}

async function namesOf(page: Page): Promise<string[]> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.waitForLoadState('networkidle');
  const buttons = await page.locator('main button').all();
  return Promise.all(
    buttons.map(
      async (one) => (await one.getAttribute('aria-label')) ?? ((await one.textContent()) ?? '').trim(),
    ),
  );
}

for (const account of ['viewer', 'member', 'admin', 'platform']) {
  t.test(`${account}: a button is there if and only if the service lets its RPC be called`, async (t) => {
    // Another session of this person, for there to be one to end.
    await signInAs(app, account);
    const { browser: signedIn } = await signInAs(app, account);
    const session = newBrowser(app, { cookie: signedIn.cookie, 'attest-project': projectId });
    const [name = '', value = ''] = signedIn.cookie.split(/=(.*)/s);
    await browser.visit(t, { origin: app.baseUrl }, async ({ page }) => {
      const rejected: string[] = [];
      page.on('response', (answer) => {
        if (answer.status() === 403) rejected.push(answer.url());
      });
      await page.context().addCookies([{ name, value, url: app.baseUrl }]);
      await page.addInitScript(`sessionStorage.setItem('scope', 'live ${projectId}')`);
      for (const [path, expected] of Object.entries(PAGES)) {
        await page.goto(`${app.baseUrl}/dashboard${path}`);
        const shown = await namesOf(page);
        for (const [pattern, method] of expected) {
          const isShown = shown.some((one) => pattern.test(one));
          t.equal(isShown, await isAllowed(session, method), `${path}: ${pattern} of ${shown.join(', ')}`);
        }
        const others = shown.filter((one) => !expected.some(([pattern]) => pattern.test(one)));
        t.same(
          others.filter((one) => !READING.test(one)),
          [],
          `${path} has no button that is not here`,
        );
        if (path === '/people' || path === '/project')
          await assertGood(t, page, `${account}-${path.slice(1)}`);
      }
      t.same(rejected, [], 'no page asks for what the role may not read');
    });
  });
}
