/** The exchange against a certified provider of OpenID Connect: discovery, keys and their rotation. */
import t from 'tap';
import { TrustRuleService } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { startOpenIdProvider } from '../../../support/identities/provider.js';

const app = await startApp(t);
const provider = await startOpenIdProvider(t);
const { projectId } = await newKey(app);

await adminOf(app).ask(TrustRuleService.method.createTrustRule, {
  projectId,
  environment: Environment.LIVE,
  issuer: provider.url,
  conditions: { sub: 'a-workload', repository: 'acme/*' },
});

const exchange = (token: string) => app.rest('/v1/tokens', { body: { token } });

t.test('a token of the provider is exchanged for a key that works', async (t) => {
  const { status, json } = await exchange(await provider.token(app.baseUrl));
  t.equal(status, 201, JSON.stringify(json));
  t.match(json, {
    project_id: projectId,
    environment: 'live',
    scopes: ['attestations:read', 'attestations:write'],
  });
  const me = await app.rest('/v1/service/me', { apiKey: String(json.secret) });
  t.match(me.json, {
    identity: { issuer: provider.url, subject: 'a-workload', claims: { repository: 'acme/app' } },
    api_key: { id: json.id, expires_at: json.expires_at },
  });
});

t.test('a key of the provider that is new is found, and one that it withdrew is not trusted', async (t) => {
  const before = await provider.token(app.baseUrl);
  await provider.rotate({ isKept: false });
  t.equal((await exchange(await provider.token(app.baseUrl))).status, 201);
  t.match((await exchange(before)).json, { error: { code: 'token.not_trusted' } });
});
