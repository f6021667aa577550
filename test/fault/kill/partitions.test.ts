/** A log goes from partition to partition under load while processes are killed, and waits at the end of the last one. */
import t from 'tap';
import { addSparePartitions, listPartitions } from '../../../src/server/log/store/partitions.js';
import { startLoad } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import type { Acknowledged } from '../../support/judging/consistent.js';
import { until } from '../../support/until.js';
import { letLeasesRunOut, untilWitnessed } from '../../support/wait-for-idle.js';

/** Of each of the log's first partitions, and how many there are. */
const LEAVES = 16;
const PARTITIONS = 12;

const scene = await setScene(t);
const { installation, pool, servers } = scene;
let api = await installation.startApi();
const [log] = await pool<{ id: number }[]>`SELECT id FROM log WHERE environment = 1`;
const logId = log?.id ?? 0;
await pool.unsafe(`DROP TABLE submission_${logId}_0`);
for (let n = 0; n < PARTITIONS; n++) await pool`SELECT add_submission_partition(${logId}, ${LEAVES})`;
const acknowledged: Acknowledged[] = [];
const load = (most: number) =>
  startLoad({ apis: () => [api.baseUrl], apiKey: scene.apiKey, clients: 6, most });

const inSubmission = async () => (await pool`SELECT FROM submission WHERE log_id = ${logId}`).length;

t.test('killed between two partitions, an API loses nothing, nor does Postgres', async (t) => {
  const worker = await installation.startWorker();
  await until(
    'partitions of the other log are ahead',
    async () => (await listPartitions(pool, 3 - logId)).length > 1,
  );
  for (let i = 0; i < 2; i++) {
    const running = load(3 * LEAVES);
    await running.more(LEAVES);
    await api.kill();
    api = await installation.startApi();
    await running.more(LEAVES);
    await servers.postgres.kill();
    await servers.postgres.start();
    await running.stop();
    acknowledged.push(...running.acknowledged);
  }
  await worker.kill();
  t.ok((await inSubmission()) > 4 * LEAVES);
  t.equal((await listPartitions(pool, logId)).length, PARTITIONS, 'none was made in an append');
});

t.test('at the end of the last partition nothing is stored until a worker has added one', async (t) => {
  const running = load(1_000);
  await until('the last partition is nearly full', async () => {
    const left = PARTITIONS * LEAVES - (await inSubmission());
    return left < 6 && (running.statuses.get(503) ?? 0) > 0;
  });
  await until('the API names what to do', () =>
    api.lines.some(({ level, msg }) => level === 'warn' && msg.includes('no partition for its next leaves')),
  );
  const before = running.acknowledged.length;
  t.ok((await inSubmission()) <= PARTITIONS * LEAVES);
  const worker = await installation.startWorker();
  await running.more(30);
  t.ok(running.acknowledged.length > before);
  t.equal((await listPartitions(pool, logId)).length, PARTITIONS + 2, 'one, and a spare one');
  t.same(await addSparePartitions(pool), []);
  await running.stop();
  await letLeasesRunOut(pool);
  await untilWitnessed(pool);
  const { leaves } = await scene.assertConsistent(t, [...acknowledged, ...running.acknowledged]);
  t.ok(leaves > PARTITIONS * LEAVES);
  await worker.stop();
  await api.stop();
});
