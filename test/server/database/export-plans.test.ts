import t from 'tap';
import type { Sql } from '../../../src/server/database/connect.js';
import { hasExportChanges, markChanges } from '../../../src/server/exports/store/export-changes.js';
import { findDueExports, leaseExport } from '../../../src/server/exports/store/export-leases.js';
import { isDayComplete, listManifestRanges } from '../../../src/server/exports/store/export-manifests.js';
import { claimExportWork, releaseExport } from '../../../src/server/exports/store/export-work.js';
import { openPlanner } from '../../support/judging/plans.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const EXPORTS = 50;
/** Exports of other projects, which have shipped nothing. */
const OTHERS = 3_000;
const BATCHES = 1_000;
const LEASE_MS = 5_000;
/** A page of an index and of a table for each of the few rows that a statement is about. */
const FEW_ROWS = 60;

const planner = openPlanner(await testDatabase(t));
t.teardown(planner.close);
const { sql } = planner;

async function fill(): Promise<void> {
  await sql`INSERT INTO project (id, name) SELECT 'prj_' || i, 'a test' FROM generate_series(0, 9) i`;
  await sql`
    INSERT INTO log (environment, origin, epoch, public_key) VALUES (1, 'log.example.com/live', 1, '')`;
  await sql`
    INSERT INTO batch (log_id, tree_size, id, first_index, root_hash, note, policy_version, sealed_at, deadline_at,
      registered_at, status)
    SELECT l.id, i * 10, 'btc_' || i, (i - 1) * 10, '', '', 1, now() - (${BATCHES} - i) * interval '1 hour', now(), now(), 2
    FROM log l, generate_series(1, ${BATCHES}) i`;
  await sql`
    INSERT INTO batch_content (log_id, tree_size, project_id, schema, submissions, first_index, last_index)
    SELECT b.log_id, b.tree_size, 'prj_' || p, 'purl', 1, b.first_index, b.first_index FROM batch b, generate_series(0, 9) p`;
  await sql`
    INSERT INTO export (id, project_id, environment, destination, secrets, compression, start, due_at)
    SELECT 'exp_' || i, 'prj_' || i % 10, 1, '{}', '', 1, 1, now() FROM generate_series(1, ${EXPORTS}) i`;
  await sql`INSERT INTO project (id, name) SELECT 'prj_other_' || i, 'a test' FROM generate_series(0, 299) i`;
  await sql`
    INSERT INTO export (id, project_id, environment, destination, secrets, compression, start)
    SELECT 'exp_other_' || i, 'prj_other_' || i % 300, 1, '{}', '', 1, 1 FROM generate_series(1, ${OTHERS}) i`;
  await sql`
    INSERT INTO export_cursor (export_id, log_id, start_size, through_size, backfill_size)
    SELECT x.id, l.id, 0, ${BATCHES * 10}, 0 FROM export x, log l`;
  await sql`
    INSERT INTO export_shipment (export_id, log_id, tree_size, batch_id, day, wanted_revision, shipped_revision, priority)
    SELECT x.id, b.log_id, b.tree_size, b.id, b.sealed_at::date,
      CASE WHEN b.tree_size % 50 = 0 THEN 2 ELSE 1 END, 1, 3
    FROM export x, batch b WHERE x.project_id NOT LIKE 'prj_other%'`;
  await sql`
    INSERT INTO export_manifest (export_id, day, due_at)
    SELECT export_id, day, now() + interval '1 hour' FROM export_shipment GROUP BY 1, 2`;
  await sql`VACUUM (ANALYZE)`;
}

t.test('each statement of a claim reads few rows of fifty thousand shipments', async (t) => {
  await fill();
  const pool = sql as unknown as Sql;
  const leased = await leaseExport(pool, 'exp_7', LEASE_MS);
  if (leased === undefined) throw new Error('the export is not due');
  const { lease } = leased;
  const day = new Date().toISOString().slice(0, 10);
  const steps: [string, () => Promise<unknown>][] = [
    ['claim new', () => claimExportWork(pool, leased, { lease, turn: 0 })],
    ['claim revised', () => claimExportWork(pool, leased, { lease, turn: 2 })],
    ['release', () => releaseExport(pool, leased, lease)],
    ['due', () => findDueExports(pool, 5)],
    ['changes', () => hasExportChanges(pool)],
    ['day', () => isDayComplete(pool, 'exp_7', day)],
    ['ranges', () => listManifestRanges(pool, 'exp_7', day)],
  ];
  for (const [what, run] of steps) {
    for (const planFor of ['these', 'any'] as const)
      for (const plan of await planner.explainAll(run, planFor))
        t.ok(
          plan.rows <= FEW_ROWS,
          `${what}, ${planFor}: ${plan.rows} rows, by ${plan.scans}, in ${plan.text}`,
        );
  }
});

t.test('changes read the shipments that they mark', async (t) => {
  const pool = sql as unknown as Sql;
  await sql`
    INSERT INTO export_change (log_id, first_index, end_index, project_id)
    VALUES (1, 5001, 5002, 'prj_7'), (1, 5010, 5020, NULL)`;
  for (const planFor of ['these', 'any'] as const)
    for (const plan of await planner.explainAll(() => markChanges(pool), planFor))
      t.ok(plan.rows <= 5 * EXPORTS, `${planFor}: ${plan.rows} rows, by ${plan.scans}, in ${plan.text}`);
});
