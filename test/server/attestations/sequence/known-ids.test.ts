/** A submission is stored once, in each order of two calls with its id, though no index of ids is unique. */
import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import {
  SubmissionOutcome,
  sequenceSubmissions,
} from '../../../../src/server/attestations/sequence/sequence-submissions.js';
import { findSubmissions } from '../../../../src/server/attestations/submissions/submissions.js';
import { connectPool, type Pool } from '../../../../src/server/database/connect.js';
import { LogLock } from '../../../../src/server/log/store/logs.js';
import { openPlanner } from '../../../support/judging/plans.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';
import { makeRow } from '../../../support/servers/submission-rows.js';
import { until } from '../../../support/until.js';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const spki = publicKey.export({ type: 'spki', format: 'der' });
const UNIQUE_VIOLATION = '23505';

const url = await testDatabase(t);
const open = (max: number): Pool => {
  const pool = connectPool({ url, name: 'test', max, statementTimeoutMs: 60_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  return pool;
};
const pool = open(4);
await pool`INSERT INTO log (environment, epoch, origin, public_key) VALUES (1, 1, 'log', '')`;

const makeRows = (count: number) => Array.from({ length: count }, () => makeRow(privateKey, 1, spki));
const append = (rows: ReturnType<typeof makeRows>, isRetry: boolean) =>
  sequenceSubmissions(pool, 1, rows, isRetry, 1_000);

async function countOf(id: string): Promise<number> {
  const [row] = await pool<{ rows: number }[]>`SELECT count(*) AS rows FROM submission WHERE id = ${id}`;
  return row?.rows ?? 0;
}

t.test('a call that arrives after its retry stores nothing', async (t) => {
  const [known, ...others] = makeRows(3);
  if (known === undefined) throw new Error('there is no row');
  await append([known], true);
  await t.rejects(append([...others, known], false), { code: UNIQUE_VIOLATION });
  t.equal(await countOf(known.id), 1);
  for (const { id } of others) t.equal(await countOf(id), 0);
});

t.test('of a call and its retry that wait for the log at once, one stores', async (t) => {
  const rows = makeRows(2);
  const writer = await pool.reserve();
  await writer`BEGIN`;
  await writer`SELECT pg_advisory_xact_lock(${LogLock.WRITE}, 1)`;
  // Without limits they do not wait for each other's rate windows before.
  const calls = [false, true].map((isRetry, n) =>
    append(
      rows.map((row) => ({ ...row, apiKeyId: `key_${n}` })),
      isRetry,
    ),
  );
  const ended = Promise.allSettled(calls);
  await until('both wait for the log', async () => {
    const [row] = await pool<{ waiting: number }[]>`
      SELECT count(*) AS waiting FROM pg_locks l JOIN pg_database d ON d.oid = l.database
      WHERE d.datname = current_database() AND locktype = 'advisory' AND NOT granted`;
    return row?.waiting === 2;
  });
  await writer`COMMIT`;
  writer.release();
  const results = await ended;
  t.same(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  t.match(
    results.find(({ status }) => status === 'rejected'),
    { reason: { code: UNIQUE_VIOLATION } },
  );
  const again = await append(rows, true);
  t.same(
    again.map(({ outcome }) => outcome),
    [SubmissionOutcome.STORED, SubmissionOutcome.STORED],
  );
  for (const { id } of rows) t.equal(await countOf(id), 1);
});

t.test('a look-up by id reads the rows of its ids alone', async (t) => {
  const rows = makeRows(500);
  await append(rows, false);
  const planner = openPlanner(url);
  t.teardown(planner.close);
  for (const planFor of ['these', 'any'] as const) {
    const ids = [rows[7]?.id ?? '', `${rows[8]?.id.slice(0, -1)}!`];
    const plan = await planner.explain(() => findSubmissions(planner.sql as unknown as Pool, ids), planFor);
    t.ok(plan.rows <= 10 && !plan.scans.includes('Seq Scan submission'), JSON.stringify(plan));
  }
});
