/** The exchange of a token whose process is killed before or after the key was stored. */
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { DEFAULT_LIMITS } from '../../../src/server/admin/store/api-keys.js';
import { insertTrustRule } from '../../../src/server/admin/store/trust-rules.js';
import { makeProject } from '../../../src/server/process/first-keys.js';
import type { Break } from '../../support/breaking/proxy.js';
import { commitOf } from '../../support/breaking/statement-matchers.js';
import { setScene } from '../../support/fault-fixture.js';
import { githubClaims, startIssuer } from '../../support/identities/issuer.js';

const { installation, pool, servers } = await setScene(t, { env: { ALLOW_INSECURE_DESTINATIONS: 'true' } });
const issuer = await startIssuer(t);
let api = await installation.startApi();

await insertTrustRule(pool, {
  id: 'tru_01JX5WQ3ZZZZZZZZZZZZZZZZZZ',
  projectId: await makeProject(pool, 'a test'),
  environment: Environment.LIVE,
  issuer: issuer.url,
  audience: 'a test',
  conditions: { repository: 'acme/app' },
  scopes: ['attestations:write'],
  recordedClaims: ['repository'],
  reusableTokens: false,
  ...DEFAULT_LIMITS,
});

async function exchange(token: string): Promise<{ status: number; secret: string } | undefined> {
  const body = JSON.stringify({ token });
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${api.baseUrl}/v1/tokens`, { method: 'POST', headers, body }).catch(
    () => undefined,
  );
  return answer && { status: answer.status, ...((await answer.json()) as { secret: string }) };
}

const BREAKS: Break[] = ['before the request arrives', 'before the answer arrives'];

for (const when of BREAKS) {
  t.test(`a token sent again after its API was killed while storing, ${when}, gets one key`, async (t) => {
    // A process that was just started sends its statements with their text.
    await api.kill();
    api = await installation.startApi();
    const token = await issuer.sign(githubClaims(issuer.url, 'a test'));
    const held = servers.postgres.proxy.holdNext(when, commitOf('INSERT INTO exchanged_key'));
    const lost = exchange(token);
    await held;
    await api.kill();
    t.equal(await lost, undefined);
    api = await installation.startApi();
    const [before] = await pool<{ n: number }[]>`SELECT count(*)::int AS n FROM exchanged_key`;
    t.equal(before?.n, when === 'before the answer arrives' ? 2 : 0, 'the commit is the point');
    const again = await exchange(token);
    t.equal(again?.status, 201);
    const headers = { authorization: `Bearer ${again?.secret}` };
    t.equal((await fetch(`${api.baseUrl}/v1/service/me`, { headers })).status, 200);
    const [after] = await pool<{ keys: number; tokens: number; audited: number }[]>`
      SELECT (SELECT count(*)::int FROM exchanged_key) AS keys, (SELECT count(*)::int FROM exchanged_token) AS tokens,
             (SELECT count(DISTINCT resource_id)::int FROM audit_entry WHERE action = 38) AS audited`;
    const n = when === 'before the answer arrives' ? 2 : 1;
    t.same(after, { keys: n, tokens: n, audited: n });
  });
}
