/** Usage counters: rows of rate windows are rolled up, and nothing is counted twice or lost. */
import t, { type Test } from 'tap';
import { insertProject } from '../../../src/server/admin/store/projects.js';
import { pruneUsage, readUsage, rollUpUsage, type UsageSpan } from '../../../src/server/admin/store/usage.js';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { takeReadTokens } from '../../../src/server/limits/rate-counters.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const READS = 1;
const SUBMISSIONS = 2;
const HOUR = 3_600;
const DAY = 86_400;
const NOW = Math.floor(Date.now() / 1000);
const TODAY = Math.floor(NOW / DAY) * DAY;
const EVERYTHING: UsageSpan[] = [
  { windowSeconds: HOUR, since: 0 },
  { windowSeconds: DAY, since: 0 },
];

async function openTables(t: Test): Promise<Pool> {
  const url = await testDatabase(t);
  const pool = connectPool({ url, name: 'test', max: 8, statementTimeoutMs: 30_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  await insertProject(pool, { id: 'prj_1', name: 'one' });
  await insertProject(pool, { id: 'prj_2', name: 'two' });
  await pool`
    INSERT INTO api_key (id, project_id, environment, name, prefix, last4, hmac, scopes)
    VALUES ('key_a', 'prj_1', 1, '', '', '', '\\x01', '{}'), ('key_b', 'prj_1', 1, '', '', '', '\\x02', '{}'),
           ('key_c', 'prj_2', 1, '', '', '', '\\x03', '{}')`;
  return pool;
}

/** Inserts rows as `take_tokens` does for `perSecond` calls in each of these seconds, in order. */
async function use(pool: Pool, key: string, bucket: number, seconds: number[], perSecond = 1): Promise<void> {
  for (const [i, second] of seconds.entries()) {
    const inWindow = (length: number) =>
      seconds.slice(0, i + 1).filter((s) => Math.floor(s / length) === Math.floor(second / length)).length;
    await pool`
      INSERT INTO rate_counter VALUES
        (${key}, ${bucket}, ${second}, ${perSecond}, ${inWindow(HOUR) * perSecond}, ${inWindow(DAY) * perSecond})`;
  }
}

const countRows = async (pool: Pool, table: string) => (await pool`SELECT FROM ${pool(table)}`).length;

t.test('moving counters changes no figure, and keeps the newest row of each key', async (t) => {
  const pool = await openTables(t);
  const seconds = [3, 2, 1].flatMap((back) =>
    [10, 20, HOUR + 5, HOUR + 6, 5 * HOUR].map((at) => TODAY - back * DAY + at),
  );
  await use(pool, 'key_a', SUBMISSIONS, seconds, 3);
  await use(pool, 'key_a', READS, seconds);
  await use(pool, 'key_b', SUBMISSIONS, [TODAY - DAY + 10, NOW - 1, NOW]);
  await use(pool, 'key_c', READS, [TODAY - 3 * DAY]);
  const owners = [{ projectId: 'prj_1' }, { projectId: 'prj_2' }, { apiKeyId: 'key_a' }];
  const read = () => Promise.all(owners.map((owner) => readUsage(pool, owner, EVERYTHING)));
  const before = await read();
  const days = before[0]?.filter(({ windowSeconds }) => windowSeconds === DAY) ?? [];
  t.match(days.slice(-3), [
    { started: TODAY - DAY, submissions: 16, reads: 5 },
    { started: TODAY - 2 * DAY, submissions: 15, reads: 5 },
    { started: TODAY - 3 * DAY, submissions: 15, reads: 5 },
  ]);
  t.match(before[1], [
    { windowSeconds: HOUR, reads: 1 },
    { windowSeconds: DAY, reads: 1 },
  ]);

  let moved = 0;
  for (let n = -1; n !== 0; ) {
    n = await rollUpUsage(pool, 4);
    t.ok(n <= 4, 'in portions');
    moved += n;
    t.same(await read(), before, 'the figures stay');
  }
  // Of key_a the newest of each bucket is left, of key_b the newest and what is too young, of key_c nothing.
  t.equal(moved, 2 * 14 + 1 + 1);
  t.equal(await countRows(pool, 'rate_counter'), 2 + 2);
  t.equal(await rollUpUsage(pool, 1_000), 0, 'there is nothing left to move');
});

t.test('windows keep counting after they were moved', async (t) => {
  const pool = await openTables(t);
  const reader = { apiKeyId: 'key_a', projectId: 'prj_a', perSecond: 1_000_000, projectPerSecond: undefined };
  await takeReadTokens(pool, 5, reader);
  await pool`UPDATE rate_counter SET second = second - 300`;
  const grant = await takeReadTokens(pool, 5, reader);
  await rollUpUsage(pool, 1_000);
  const rows = await readUsage(pool, { apiKeyId: 'key_a' }, [{ windowSeconds: DAY, since: TODAY - DAY }]);
  const sum = rows.reduce((total, { reads }) => total + reads, 0);
  t.equal(sum, 10);
  t.equal(await countRows(pool, 'rate_counter'), 1);
  const next = await takeReadTokens(pool, 5, reader);
  t.equal(next.nDay, grant.nDay + 5, 'the window of the day is as it was');
});

t.test('several workers move each row once', async (t) => {
  const pool = await openTables(t);
  const seconds = Array.from({ length: 500 }, (_, i) => TODAY - DAY + i);
  await use(pool, 'key_a', READS, seconds);
  const moved = await Promise.all(Array.from({ length: 8 }, () => rollUpUsage(pool, 1_000)));
  t.equal(
    moved.reduce((total, n) => total + n, 0),
    499,
  );
  t.match(await readUsage(pool, { apiKeyId: 'key_a' }, [{ windowSeconds: DAY, since: 0 }]), [{ reads: 500 }]);
});

t.test('hours are kept for 8 days, days for 90', async (t) => {
  const pool = await openTables(t);
  for (const back of [0, 7, 9, 89, 91]) {
    for (const window of [HOUR, DAY]) {
      await pool`INSERT INTO usage_counter VALUES ('key_a', ${window}, ${TODAY - back * DAY}, ${READS}, 1)`;
    }
  }
  await pruneUsage(pool);
  const rows = await readUsage(pool, { apiKeyId: 'key_a' }, EVERYTHING);
  const kept = (window: number) =>
    rows
      .filter(({ windowSeconds }) => windowSeconds === window)
      .map(({ started }) => (TODAY - started) / DAY);
  t.same(kept(HOUR), [0, 7]);
  t.same(kept(DAY), [0, 7, 9, 89]);
});
