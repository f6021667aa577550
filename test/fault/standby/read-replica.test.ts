/** Pools of a replica for reads: they show every acknowledged write while no primary responds. */
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { connectPool } from '../../../src/server/database/connect.js';
import { openReadReplica, type ReadReplica } from '../../../src/server/database/read-replica.js';
import { type StandbyPair, startStandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';
import { linkTo, untilAsked } from './primary-link.js';

async function scene(t: Test, pair: StandbyPair) {
  const { link, url } = await linkTo(t, pair);
  const pool = connectPool({ url, name: 'test', max: 4, statementTimeoutMs: 5_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  const reasons: (string | undefined)[] = [];
  const replica = openReadReplica({
    url,
    readUrl: pair.standbyUrl,
    max: 4,
    statementTimeoutMs: 5_000,
    onChange: (reason) => reasons.push(reason),
  });
  t.teardown(replica.close);
  return { link, pool, replica, reasons, reads: replica.readsOf(pool) };
}

const untilAway = (replica: ReadReplica, isAway = true) =>
  until('it has noticed', async () => (replica.reason() !== undefined) === isAway);

t.test('a read shows what was acknowledged before it, however late the standby applies it', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, replica, reads, reasons } = await scene(t, pair);
  const count = async () => (await reads`SELECT max(n) AS n FROM written`)[0]?.n;
  await pair.primary`CREATE TABLE written (n integer)`;
  await pair.primary`CREATE TABLE blocked ()`;
  await pair.primary`INSERT INTO written VALUES (0)`;
  await until('the primary is asked', async () => (await count()) === 0);
  await untilAsked(pair.primary, 'attest primary');
  for (const mode of ['refuses', 'stalls'] as const) {
    const startedMs = performance.now();
    link.set(mode);
    await untilAway(replica);
    t.ok(performance.now() - startedMs < 5_000, `${mode}: noticed`);
    const [{ isStandby } = {}] = await reads`SELECT pg_is_in_recovery() AS "isStandby"`;
    t.equal(isStandby, true);
    let late: Promise<unknown> | undefined;
    await pair.standby.begin(async (tx) => {
      // The standby applies nothing while a reader has the table that is rewritten.
      await tx`SELECT FROM blocked`;
      await pair.primary`ALTER TABLE blocked ADD COLUMN ${pair.primary(`c_${mode}`)} integer`;
      await pair.primary`INSERT INTO written SELECT max(n) + 1 FROM written`;
      late = count();
      await delay(300);
      t.equal((await tx`SELECT pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn() AS is`)[0]?.is, true);
    });
    const wanted = (await pair.primary`SELECT max(n) AS n FROM written`)[0]?.n;
    t.equal(await late, wanted, 'also while the standby applies nothing');
    for (let n = wanted + 1; n < wanted + 50; n++) {
      await pair.primary`INSERT INTO written VALUES (${n})`;
      const seen = await Promise.all([count(), count(), reads.unsafe('SELECT max(n) AS n FROM written')]);
      t.same([seen[0], seen[1], seen[2]?.[0]?.n], [n, n, n]);
    }
    link.set('passes');
    link.cut('reset');
    await untilAway(replica, false);
  }
  t.equal(reasons.length, 4);
});

t.test('what a primary that fell silent has not answered fails once that is noticed', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, replica, reads } = await scene(t, pair);
  await untilAsked(pair.primary, 'attest primary');
  const slow = reads`SELECT pg_sleep(60)`.catch((error: unknown) => error);
  const done = await reads`SELECT 1 AS one`;
  link.set('stalls');
  const late = reads`SELECT 2`.catch((error: unknown) => error);
  await untilAway(replica);
  t.match(await Promise.all([slow, late]), [{ code: 'NO_PRIMARY' }, { code: 'NO_PRIMARY' }]);
  t.same([done, await reads`SELECT 1 AS one`], [[{ one: 1 }], [{ one: 1 }]]);
});

t.test('fragments go to the server of their statement', async (t) => {
  const pair = await startStandbyPair(t);
  const { link, replica, reads } = await scene(t, pair);
  await untilAsked(pair.primary, 'attest primary');
  const before = reads`n > ${1}`;
  link.set('refuses');
  await untilAway(replica);
  const after = reads`n < ${3}`;
  t.same(await reads`SELECT n FROM generate_series(1, 5) n WHERE ${before} AND ${after}`, [{ n: 2 }]);
});

t.test('a server that lacks what the primary had serves nothing', async (t) => {
  const WATCHES = 3;
  const [pair, other] = [await startStandbyPair(t), await startStandbyPair(t)];
  const { link, url } = await linkTo(t, pair);
  const open = (readUrl: string) => {
    const replica = openReadReplica({ url, readUrl, max: 1, statementTimeoutMs: 1_000, onChange: () => {} });
    t.teardown(replica.close);
    return replica;
  };
  const right = open(pair.standbyUrl);
  const foreign = open(other.standbyUrl);
  const none = open('postgres://u:p@127.0.0.1:9/d');
  await untilAsked(pair.primary, 'attest primary', WATCHES);
  await pair.primary`CREATE TABLE more (n integer)`;
  pair.takeStandbyAway();
  // It is written and not replicated: the commit waits.
  const waiting = pair.primary`INSERT INTO more VALUES (1)`.execute();
  await pair.untilCommitsWait();
  await untilAsked(pair.primary, 'attest primary', WATCHES);
  link.set('refuses');
  await untilAsked(pair.standby, 'attest replica');
  await untilAsked(other.standby, 'attest replica');
  t.equal(right.reason(), undefined, 'it is behind');
  t.equal(foreign.reason(), undefined);
  t.equal(none.reason(), undefined);
  await pair.bringStandbyBack();
  await waiting;
  await untilAway(right);
  t.equal(foreign.reason(), undefined);
});
