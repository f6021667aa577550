/** What the tests of this folder stand on: a primary whose commits wait for a standby, and how that ends. */
import t, { type Test } from 'tap';
import type { Pool } from '../../../src/server/database/connect.js';
import { type StandbyPair, startStandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';

async function openPair(t: Test): Promise<StandbyPair> {
  const pair = await startStandbyPair(t);
  await pair.primary`CREATE TABLE seen (n integer)`;
  return pair;
}

const write = (pool: Pool, n: number) => pool`INSERT INTO seen VALUES (${n})`.execute();
const seen = async (pool: Pool) =>
  (await pool<{ n: number }[]>`SELECT n FROM seen ORDER BY n`).map(({ n }) => n);

t.test('a commit waits while the standby is away', async (t) => {
  const pair = await openPair(t);
  await write(pair.primary, 1);
  pair.takeStandbyAway();
  const written = write(pair.primary, 2);
  await pair.untilCommitsWait();
  t.same(await seen(pair.primary), [1], 'nobody sees it before');
  await pair.bringStandbyBack();
  await written;
  t.same(await seen(pair.standby), [1, 2]);
});

const ENDS: Record<string, (pair: StandbyPair) => Promise<void>> = {
  'its session is ended': (pair) => pair.endWaitingSessions(),
  'its wait is cancelled': (pair) => pair.cancelWaits(),
  'the primary restarts': (pair) => pair.restartPrimary(),
  'the primary crashes': (pair) => pair.crashPrimary(),
  'the primary is demoted': (pair) => pair.demotePrimary(),
};

for (const [what, end] of Object.entries(ENDS)) {
  t.test(`what waited is on the primary alone once ${what}`, async (t) => {
    const pair = await openPair(t);
    await write(pair.primary, 1);
    pair.takeStandbyAway();
    const written = t.rejects(write(pair.primary, 2), 'nobody is told that it is done');
    await pair.untilCommitsWait();
    await end(pair);
    await written;
    await until('it is there', async () => (await seen(pair.primary)).length === 2);
    await pair.promoteStandby();
    t.same(await seen(pair.standby), [1]);
    await write(pair.standby, 3);
  });
}
