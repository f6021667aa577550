/** The bucket of the public log is away: the alert that fires. */
import t from 'tap';
import { newCreation, send } from '../../support/calling/load.js';
import { bucketSetting, startStore } from '../../support/exports/s3/fixture.js';
import { disproveFiring, IDLE, STORED, scrapeUntil } from '../../support/judging/alerts.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const server = await startStore(t);
const tsa = await startFaultTsa(t);
const installation = await makeInstallation(t, {
  env: {
    LOG_STORAGE: bucketSetting(server.url, 'public'),
    WITNESSES: JSON.stringify([tsa.setting('foreign')]),
  },
});
const pool = installation.openPool();
const apiKey = await makeUnlimitedKey(pool);
const worker = await installation.startWorker();
const api = await installation.startApi();
const scrapeOnce = (...lines: RegExp[]) => scrapeUntil({ api, worker }, ...IDLE, ...lines);

async function submit(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await send(api.baseUrl, apiKey, newCreation());
  await untilWitnessed(pool);
}

await submit(3);
const health = await scrapeOnce(STORED);

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('the bucket is away, and a restarted worker does not know what it has', async (t) => {
  await server.goAway();
  await submit(2);
  const behind = (size: number) =>
    new RegExp(`^attest_log_stored_size\\{log="live\\.log\\.example\\.com"\\} ${size}$`, 'm');
  const during = await scrapeOnce(behind(3));
  t.equal(await disproveFiring({ before: health, during }, ['AttestLogStorageBehind']), undefined);
  const restarted = await installation.startWorker();
  await worker.kill();
  const unknown = await scrapeUntil({ api, worker: restarted }, behind(0));
  t.equal(await disproveFiring({ before: health, during: unknown }, ['AttestLogStorageBehind']), undefined);
  await server.comeBack();
  const after = await scrapeUntil({ api, worker: restarted }, ...IDLE, STORED);
  t.equal(await disproveFiring({ before: during, during: after }, []), undefined);
});
