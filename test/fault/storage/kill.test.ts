/** Workers that are killed while they write the public log to a bucket: what a reader finds is whole at every moment. */
import { randomInt } from 'node:crypto';
import t from 'tap';
import { examineLog } from '../../server/public/storage/stored-log.js';
import { newCreation, send, startLoad } from '../../support/calling/load.js';
import type { Fault, SeenRequest } from '../../support/exports/s3/faults.js';
import { bucketSetting, startStore, storedBytes } from '../../support/exports/s3/fixture.js';
import { setScene } from '../../support/fault-fixture.js';
import { someOf } from '../../support/long.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

const store = await startStore(t);
const { installation, pool, apiKey, assertConsistent } = await setScene(t, {
  env: { LOG_STORAGE: bucketSetting(store.url, 'public') },
});
const api = await installation.startApi();
const readObject = (path: string) => storedBytes(store, `public/log/live/${path}`);

/** Looks at the log whenever the store may have changed. @returns what it saw, until `stop` */
function watch() {
  const seen = { sizes: [] as number[], problems: [] as string[] };
  let note = '';
  const look = () => {
    const now = readObject('checkpoint')?.toString() ?? '';
    if (now === note) return;
    note = now;
    const { size, problem } = examineLog(readObject);
    seen.sizes.push(size);
    if (problem !== undefined) seen.problems.push(problem);
  };
  const timer = setInterval(look, 2);
  const stop = () => {
    clearInterval(timer);
    look();
    return seen;
  };
  return { stop };
}

const MOMENTS = ['before', 'during', 'after'] as const;
/** Writes after its start in which a worker is killed. */
const MOST_WRITES = 12;

t.test('a worker that is killed in a write leaves no checkpoint ahead of its tiles', async (t) => {
  const load = startLoad({ apis: () => [api.baseUrl], apiKey, clients: 4, most: 2_000 });
  const watching = watch();
  for (const moment of someOf([...MOMENTS, ...MOMENTS, ...MOMENTS], 3)) {
    const last = randomInt(1, MOST_WRITES);
    t.comment(`killed ${moment} write ${last}`);
    const worker = await installation.startWorker();
    await killedIn(moment, last, () => worker.kill());
  }
  const successor = await installation.startWorker();
  await load.more(20);
  await load.stop();
  const { body } = await send(api.baseUrl, apiKey, newCreation());
  await untilWitnessed(pool);
  await until('the store has caught up', () => examineLog(readObject).size > body.log_index);
  const { sizes, problems } = watching.stop();
  t.same(problems, []);
  t.ok(sizes.length > 3, `saw the sizes ${sizes.join(', ')}`);
  t.same(
    sizes,
    [...sizes].sort((a, b) => a - b),
    'it only grows',
  );
  await assertConsistent(t, load.acknowledged);
  await successor.stop();
});

/** Kills a worker in its write of that number: before its bytes are read, in the midst of them, or before it is answered. */
async function killedIn(
  moment: (typeof MOMENTS)[number],
  last: number,
  kill: () => Promise<void>,
): Promise<void> {
  let writes = 0;
  await new Promise<void>((done) => {
    store.fail(({ method, key }: SeenRequest): Fault | undefined => {
      if (method !== 'PUT' || !key.startsWith('public/log/live/') || ++writes !== last) return undefined;
      const killed = kill();
      void killed.then(done);
      if (moment === 'before') return { kind: 'hold', until: killed };
      return moment === 'during' ? { kind: 'cut', afterBytes: 1 } : { kind: 'cut-answer' };
    });
  });
  store.fail(() => undefined);
}
