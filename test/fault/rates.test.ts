/** One key's windows over two processes, by every surface, with and without one of them killed in between. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { creation } from '../server/rpc/samples.js';
import { surfacesOf } from '../support/calling/rpc-clients.js';
import { setScene } from '../support/fault-fixture.js';
import { withinOneHour } from '../support/fixed-clock.js';
import { makeUnlimitedKey, type ServiceProcess } from '../support/servers/installation.js';

const LIMIT = 40;
const REQUESTS = 160;
const { createAttestation } = AttestationService.method;
const { installation, pool } = await setScene(t);
const apis: [ServiceProcess, ServiceProcess] = [await installation.startApi(), await installation.startApi()];

function surfacesAt({ baseUrl }: ServiceProcess) {
  const surfaces = surfacesOf(baseUrl, { answered: () => {} });
  t.teardown(() => {
    for (const surface of surfaces) surface.close();
  });
  return surfaces;
}

let artifacts = 0;

/** Creates as often as said at once, by every surface of every process in turn. @returns what each came to */
function storm(apiKey: string, requests: number): Promise<string[]> {
  const surfaces = apis.flatMap(surfacesAt);
  return Promise.all(
    Array.from({ length: requests }, async (_, i) => {
      const sha256 = createHash('sha256').update(String(artifacts++)).digest('hex');
      const sent = surfaces[i % surfaces.length]?.call(createAttestation, creation(sha256), apiKey);
      return (await sent?.catch(() => undefined))?.code ?? 'broken';
    }),
  );
}

async function countStored(apiKey: string): Promise<number> {
  const [row] = await pool<{ n: number }[]>`
    SELECT count(*)::int AS n FROM named_submission s JOIN api_key k USING (project_id)
    WHERE k.last4 = ${apiKey.slice(-4)}`;
  return row?.n ?? 0;
}

for (const [window, limits] of [
  ['hour', { perHour: LIMIT }],
  ['day', { perDay: LIMIT }],
] as const) {
  t.test(
    `two processes admit together what a key may create in one ${window}, not one more or less`,
    async (t) => {
      const { key, codes } = await withinOneHour(async () => {
        const key = await makeUnlimitedKey(pool, Environment.LIVE, limits);
        return { key, codes: [await storm(key, LIMIT / 2), await storm(key, REQUESTS)].flat() };
      });
      t.equal(codes.filter((code) => code === 'ok').length, LIMIT);
      t.same(new Set(codes), new Set(['ok', 'rate_limit.exceeded']));
      t.equal(await countStored(key), LIMIT);
    },
  );
}

t.test('the count survives a process that is killed', async (t) => {
  const { key, codes } = await withinOneHour(async () => {
    const key = await makeUnlimitedKey(pool, Environment.LIVE, { perHour: LIMIT });
    const amid = storm(key, LIMIT);
    await apis[1].kill();
    const codes = await amid;
    apis[1] = await installation.startApi();
    codes.push(...(await storm(key, REQUESTS)));
    return { key, codes };
  });
  t.ok(codes.filter((code) => code === 'ok').length <= LIMIT);
  t.equal(await countStored(key), LIMIT, 'what was stored without an answer counts as well');
  t.ok(codes.slice(LIMIT).includes('rate_limit.exceeded'));
});
