/** A TUF repository that is not published again, or that no worker renews, and the alerts that this fires. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { installClock, letPass } from '../../support/breaking/database-clock.js';
import { newCreation, send } from '../../support/calling/load.js';
import { runHere } from '../../support/calling/run-cli.js';
import { disproveFiring, IDLE, scrapeAll, scrapeUntil } from '../../support/judging/alerts.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const DAY_MS = 86_400_000;
const dir = t.testdir({});
const file = (name: string) => join(dir, name);
const { privateKey } = generateKeyPairSync('ed25519');
writeFileSync(file('online.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));

const installation = await makeInstallation(t);
await installClock(installation.databaseUrl);
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);
// Without the online key.
const worker = await installation.startWorker();
installation.env.TUF_KEY_FILE = file('online.pem');
const api = await installation.startApi();

/** `attest tuf`, by an operator whose clock is that many days behind. */
async function tuf(args: readonly string[], daysBehind = 0): Promise<void> {
  const env = { ATTEST_URL: api.baseUrl, ATTEST_ADMIN_TOKEN: installation.env.ADMIN_TOKEN };
  const now = () => new Date(Date.now() - daysBehind * DAY_MS);
  const { code, stderr } = await runHere(['tuf', ...args, '--key', file('root.pem'), '--yes'], { env, now });
  if (code !== 0) throw new Error(stderr);
}

await send(api.baseUrl, apiKey, newCreation());
await untilWitnessed(pool);
await tuf(['init', '--out', file('root.json')]);
const health = await scrapeUntil({ api, worker }, ...IDLE, /^attest_tuf_outdated 0$/m);

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('targets were signed ten months ago', async (t) => {
  await tuf(['publish'], 310);
  const during = await scrapeAll({ api, worker });
  t.equal(await disproveFiring({ before: health, during }, ['AttestTufRootExpires']), undefined);
  await tuf(['publish']);
});

t.test('no worker has had the online key for five days', async (t) => {
  await letPass({ pool }, -5 * DAY_MS);
  await tuf(['publish']);
  await letPass({ pool }, 5 * DAY_MS);
  const during = await scrapeUntil({ api, worker }, /^attest_clock_offset_seconds -?0/m);
  t.equal(await disproveFiring({ before: health, during }, ['AttestTufSnapshotExpires']), undefined);
});

t.test('an authority is new, and a worker with the online key renews what is published', async (t) => {
  await worker.stop();
  const tsa = await startFaultTsa(t);
  installation.env.WITNESSES = JSON.stringify([tsa.setting('foreign')]);
  const renewing = await installation.startWorker();
  const remaining = () =>
    pool`SELECT FROM tuf_file WHERE role = 'timestamp' AND created_at > clock_timestamp() - interval '1 hour'`;
  await until('it has renewed', async () => (await remaining()).length === 1);
  await scrapeUntil({ worker: renewing }, /^attest_jetstream_up\S* 1$/m);
  const during = await scrapeUntil({ api, worker: renewing }, /^attest_tuf_outdated 1$/m);
  t.equal(await disproveFiring({ before: health, during }, ['AttestTufOutdated']), undefined);
});
