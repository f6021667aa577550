/** The faults that operators are woken for fire their alerts, and health fires none. */
import t from 'tap';
import { startLoad } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import { disproveFiring, type Scrapes, scrapeAll } from '../../support/judging/alerts.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';

const scene = await setScene(t);
const { installation, pool, servers, tsa, apiKey } = scene;
const worker = await installation.startWorker();
const api = await installation.startApi();
const scrape = () => scrapeAll({ api, worker });

async function submit(): Promise<void> {
  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 2, most: 10 });
  await load.more(10);
  await load.stop();
}

/** The scrapes once one of them has a line. */
async function scrapeOnce(line: RegExp): Promise<Scrapes> {
  return until(`there is ${line}`, async () => {
    const scrapes = await scrape();
    return Object.values(scrapes).some((text) => line.test(text ?? '')) ? scrapes : undefined;
  });
}

await submit();
await untilWitnessed(pool);
const health = await scrape();

t.test('health fires nothing', async (t) => {
  t.equal(await disproveFiring({ before: health, during: health }, []), undefined);
});

t.test('a witness that fails', async (t) => {
  tsa.mood = 'fails';
  await submit();
  await until('it has failed five times', async () => {
    await letWitnessesBeAsked(pool);
    const [{ failures = 0 } = {}] = await pool`SELECT max(failures) AS failures FROM witness_state`;
    return failures >= 5;
  });
  const during = await scrapeOnce(/^attest_witness_consecutive_failures\{.*\} [5-9]/m);
  t.equal(await disproveFiring({ before: health, during }, ['AttestWitnessFailing']), undefined);
  tsa.mood = 'answers';
  await letWitnessesBeAsked(pool);
  await untilWitnessed(pool);
});

t.test('NATS is killed', async (t) => {
  await servers.nats.kill();
  const during = await scrapeOnce(/^attest_jetstream_up\{client="worker"\} 0/m);
  t.equal(await disproveFiring({ before: health, during }, ['AttestJetStreamDown']), undefined);
  await servers.nats.start();
  await scrapeOnce(/^attest_jetstream_up\{client="worker"\} 1/m);
});

t.test('Postgres is stopped', async (t) => {
  await servers.postgres.stop();
  const during = await scrape();
  t.equal(await disproveFiring({ before: health, during }, ['AttestDatabaseDown']), undefined);
  await servers.postgres.start();
});

t.test('the worker is killed, then the API', async (t) => {
  await worker.kill();
  const without = ['AttestProcessDown', 'AttestWorkerDown'];
  t.equal(await disproveFiring({ before: health, during: await scrape() }, without), undefined);
  await api.kill();
  t.equal(
    await disproveFiring({ before: health, during: await scrape() }, ['AttestApiDown', ...without]),
    undefined,
  );
});
