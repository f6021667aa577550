/** A URL of several servers: connections go to the primary, and to no server that another one has taken over from. */
import t, { type Test } from 'tap';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { errorCode, isDatabaseUnavailable } from '../../../src/server/database/database-errors.js';
import { startStandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';

const NOBODY = 'postgres://u:p@127.0.0.1:9,127.0.0.1:19/d';

function open(t: Test, url: string): Pool {
  const pool = connectPool({ url, name: 'several', max: 4, statementTimeoutMs: 5_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  return pool;
}

const isReplica = async (sql: Pick<Pool, 'unsafe'>) => {
  const [row] = await sql.unsafe<{ is: boolean }[]>('SELECT pg_is_in_recovery() AS is');
  return row?.is;
};

t.test('connections and transactions are those of the primary, wherever the URL has it', async (t) => {
  const pool = open(t, (await startStandbyPair(t)).urlOfBoth);
  const all = Array.from({ length: 8 }, (_, i) => (i % 2 ? isReplica(pool) : pool.begin(isReplica)));
  t.same(
    await Promise.all(all),
    all.map(() => false),
  );
});

t.test('after a promotion the old primary, which goes on, is asked no more', async (t) => {
  const pair = await startStandbyPair(t);
  const pool = open(t, pair.urlOfBoth);
  await pool`CREATE TABLE seen (n integer)`;
  await pair.promoteStandby();
  t.equal(await isReplica(pair.primary), false, 'both say that they are the primary');
  await until('the new one takes a write', async () => {
    await pool`INSERT INTO seen VALUES (1)`;
    return true;
  });
  t.same(await pair.standby`SELECT n FROM seen`, [{ n: 1 }]);
  t.same(await pair.primary`SELECT n FROM seen`, []);
  for (let n = 2; n < 20; n++) await pool.begin((tx) => tx`INSERT INTO seen VALUES (${n})`);
  t.same(await pair.standby`SELECT count(*)::int AS n FROM seen`, [{ n: 19 }]);
  await until('no connection to the old one is left but those whose commits wait', async () => {
    const left =
      await pair.primary`SELECT FROM pg_stat_activity WHERE application_name = 'attest several' AND wait_event IS DISTINCT FROM 'SyncRep'`;
    return left.length === 0;
  });
});

t.test(
  'without a primary a statement fails at once as unavailable, and succeeds once there is one',
  async (t) => {
    const pair = await startStandbyPair(t);
    const pool = open(t, pair.urlOfBoth);
    await pair.demotePrimary();
    const error = await pool`SELECT 1`.catch((reason: unknown) => reason);
    t.ok(isDatabaseUnavailable(error), String(errorCode(error)));
    await until(
      'it says that there is none',
      async () => errorCode(await pool`SELECT 1`.catch((e: unknown) => e)) === 'NO_PRIMARY',
    );
    await pair.promoteStandby();
    await until('there is one', async () => (await isReplica(pool)) === false);
  },
);

t.test('a pool ends while it looks for its primary', async (t) => {
  const pool = connectPool({ url: NOBODY, name: 'test', max: 4, statementTimeoutMs: 5_000 });
  const asked = t.rejects(pool`SELECT 1`);
  await pool.end({ timeout: 0 });
  await asked;
});
