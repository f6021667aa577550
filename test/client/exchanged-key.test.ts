/** Clients without a stored key: when they exchange their token. */
import t from 'tap';
import { TrustRuleService } from '../../gen/attestation/admin/v1/trust_rules_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { createCaller } from '../../src/client/caller.js';
import { createClient } from '../../src/client/client.js';
import { exchangedKey } from '../../src/client/keys/exchanged-key.js';
import { startApp } from '../support/app.js';
import { adminOf } from '../support/calling/admin.js';
import { newKey } from '../support/calling/test-keys.js';
import { githubClaims, startIssuer } from '../support/identities/issuer.js';

const app = await startApp(t);
const issuer = await startIssuer(t);
const { projectId } = await newKey(app);
const admin = adminOf(app);
const { createTrustRule, removeTrustRule } = TrustRuleService.method;
const rule = { projectId, issuer: issuer.url, conditions: { repository: 'acme/app' } };
await admin.ask(createTrustRule, { ...rule, environment: Environment.LIVE });
const test = await admin.ask(createTrustRule, { ...rule, environment: Environment.TEST });

let exchanges = 0;
const identityToken = () => {
  exchanges++;
  return issuer.sign(githubClaims(issuer.url, app.baseUrl));
};

t.test('a client exchanges once for many calls at once, and again for a key that is rejected', async (t) => {
  exchanges = 0;
  const client = createClient({ baseUrl: app.baseUrl, identityToken, projectId, environment: 'test' });
  t.equal(exchanges, 0, 'not before the first call');
  const all = await Promise.all([1, 2, 3].map(() => client.service.getMe()));
  t.equal(exchanges, 1);
  t.equal(all[0]?.apiKey?.environment, Environment.TEST);
  t.equal(all[0]?.identity?.claims.repository, 'acme/app');
  await admin.ask(createTrustRule, { ...rule, environment: Environment.TEST });
  await admin.ask(removeTrustRule, { id: String(test.id) });
  t.equal((await client.service.getMe()).project?.id, projectId, 'by the other rule');
  t.equal(exchanges, 2);
});

t.test(
  'a key is exchanged anew after ten minutes, before it expires, and when it was rejected',
  async (t) => {
    exchanges = 0;
    let nowMs = 0;
    const caller = createCaller({ baseUrl: app.baseUrl, apiKey: 'unused' });
    const source = exchangedKey(caller, { identityToken, environment: 'live' }, () => nowMs);
    const first = await source.get(undefined);
    nowMs = 10 * 60_000 - 1;
    t.equal(await source.get(undefined), first);
    nowMs = 10 * 60_000;
    const second = await source.get(undefined);
    t.not(second, first);
    t.equal(source.replace(String(first)), true);
    t.equal(await source.get(undefined), second, 'the key that was rejected was an earlier one');
    source.replace(String(second));
    t.not(await source.get(undefined), second);
    t.equal(exchanges, 3);
  },
);

t.test('errors are those of the token and of the exchange', async (t) => {
  const failing = createClient({
    baseUrl: app.baseUrl,
    identityToken: () => Promise.reject(new Error('no token')),
  });
  await t.rejects(failing.service.getMe(), { message: 'no token' });
  const ambiguous = createClient({ baseUrl: app.baseUrl, identityToken });
  await t.rejects(ambiguous.service.getMe(), { code: 'request.invalid' });
  const elsewhere = () => issuer.sign(githubClaims(issuer.url, 'https://elsewhere.example.com'));
  const other = createClient({ baseUrl: app.baseUrl, identityToken: elsewhere });
  await t.rejects(other.service.getMe(), { code: 'token.not_trusted' });
  t.throws(() => createClient({ baseUrl: app.baseUrl }), { message: /apiKey is not an API key/ });
  t.throws(() => createClient({ baseUrl: app.baseUrl, identityToken: 'x' as never }), TypeError);
});
