/** Transactions that are open at the same time: whichever commits first, nothing is lost and nobody waits for ever. */
import t from 'tap';
import { correctMetadata, redactMetadata } from '../../../../src/server/attestations/submissions/metadata.js';
import type { Sql } from '../../../../src/server/database/connect.js';
import { leaseExport, recordExportFailure } from '../../../../src/server/exports/store/export-leases.js';
import { claimExportWork, releaseExport } from '../../../../src/server/exports/store/export-work.js';
import { recordShipment } from '../../../../src/server/exports/store/shipments.js';
import { reviseJob } from '../../../../src/server/jobs/job.js';
import { runJob } from '../../../../src/server/pipeline/stages.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { assertExported, setExportScene } from '../../../support/exports/scene.js';
import { drain, unwilling, willing } from '../../../support/pipeline.js';
import { until } from '../../../support/until.js';
import { submitFor } from '../../../support/webhooks/webhooks.js';

const LEASE_MS = 5_000;
const scene = await setExportScene(t);
const { test, store, witnesses } = scene;
const { pool, pipeline } = test;
const [witness] = witnesses;
if (witness === undefined) throw new Error('there is no witness');
const mark = () => runJob(pipeline, reviseJob());
const OTHER = { schema: 'other', canonical: '{"note":"corrected","schema":"other"}' };

/** Runs `work` in a transaction, which commits when the function that it gives is called; in another pool than what waits. */
async function holdOpen(work: (tx: Sql) => PromiseLike<unknown>): Promise<() => Promise<void>> {
  let done = () => {};
  let commit = () => {};
  const worked = new Promise<void>((resolve) => {
    done = resolve;
  });
  const committing = new Promise<void>((resolve) => {
    commit = resolve;
  });
  const transaction = pipeline.exports.pool.begin(async (tx) => {
    await work(tx);
    done();
    await committing;
  });
  await Promise.race([worked, transaction]);
  return async () => {
    commit();
    await transaction;
  };
}

async function leaseNow(id: string) {
  await pool`UPDATE export SET due_at = clock_timestamp() WHERE id = ${id}`;
  const leased = await leaseExport(pool, id, LEASE_MS);
  if (leased === undefined) throw new Error('the export is not due');
  return leased;
}

/** Waits until a promise is settled, or its statement waits for a lock. */
async function untilBlocked(promise: Promise<unknown>): Promise<void> {
  let isSettled = false;
  promise.finally(() => {
    isSettled = true;
  });
  await until('it is done or waits', async () => {
    const waiting = await pool`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return isSettled || waiting.length > 0;
  });
}

t.test('a correction is marked while a claim of its new schema passes the batch', async (t) => {
  const projectId = await scene.newProject();
  const other = await scene.exportOf(projectId, { schema: 'other' });
  const [id = ''] = await scene.submit(projectId, 2);
  const leased = await leaseNow(other.id);
  const commit = await holdOpen(async (tx) => {
    const work = await claimExportWork(tx, leased, { lease: leased.lease, turn: 0 });
    t.equal(work, undefined, 'nothing matches');
  });
  await pool.begin((tx) => correctMetadata(tx, id, OTHER));
  const marking = mark();
  await untilBlocked(marking);
  await commit();
  await marking;
  await pool.begin((tx) => releaseExport(tx, leased, leased.lease));
  await drain(pipeline);
  await assertExported(t, { pool, store }, other);
});

t.test('a correction is marked while its batch is being sealed', async (t) => {
  const projectId = await scene.newProject();
  const other = await scene.exportOf(projectId, { schema: 'other' });
  const [id = ''] = await submitFor(test, projectId, 2);
  await pool.unsafe(`
    CREATE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER held AFTER INSERT ON batch DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION hold_commit()`);
  const letSeal = await holdOpen((tx) => tx`SELECT pg_advisory_xact_lock(77)`);
  const sealing = drain(pipeline);
  await untilBlocked(sealing);
  await pool.begin((tx) => correctMetadata(tx, id, OTHER));
  await mark();
  await letSeal();
  await sealing;
  await pool`DROP FUNCTION hold_commit CASCADE`;
  await drain(pipeline);
  await assertExported(t, { pool, store }, other);
});

t.test('a change that is marked and a claim do not wait for each other', async (t) => {
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  const [id = ''] = await scene.submit(projectId, 2);
  const [shipment] = await pool<{ logId: number; treeSize: number }[]>`
    SELECT log_id AS "logId", tree_size AS "treeSize" FROM export_shipment WHERE export_id = ${made.id}`;
  if (shipment === undefined) throw new Error('nothing was shipped');
  await pool`
    UPDATE export_shipment SET wanted_revision = wanted_revision + 1 WHERE export_id = ${made.id}`;
  await pool.begin((tx) => redactMetadata(tx, id));
  const leased = await leaseNow(made.id);
  let marking: Promise<unknown> = Promise.resolve();
  const work = await pool.begin(async (tx) => {
    await tx`SELECT FROM export WHERE id = ${made.id} FOR UPDATE`;
    marking = mark();
    await untilBlocked(marking);
    return claimExportWork(tx, leased, { lease: leased.lease, turn: 0 });
  });
  await marking;
  t.match(work, { kind: 'shipment', ...shipment });
  await pool.begin((tx) => releaseExport(tx, leased, leased.lease));
  await drain(pipeline);
  await assertExported(t, { pool, store }, made);
});

t.test('a redaction during the upload comes before later evidence', async (t) => {
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  await scene.submit(projectId, 1);
  const [last = ''] = await scene.submit(projectId, 1);
  await pool`UPDATE export_shipment SET wanted_revision = wanted_revision + 1 WHERE export_id = ${made.id}`;
  const leased = await leaseNow(made.id);
  const [shipment] = await pool<{ logId: number; treeSize: number; revision: number }[]>`
    SELECT log_id AS "logId", tree_size AS "treeSize", wanted_revision AS revision FROM export_shipment
    WHERE export_id = ${made.id} ORDER BY tree_size DESC LIMIT 1`;
  if (shipment === undefined) throw new Error('nothing was shipped');
  await pool.begin((tx) => redactMetadata(tx, last));
  await mark();
  const written = { bytes: 1, submissions: 1, sha256: Buffer.alloc(32), unstampedFrom: null };
  const [day] = await pool<{ day: string }[]>`SELECT to_char(clock_timestamp(), 'YYYY-MM-DD') AS day`;
  const shipped = { kind: 'shipment', firstIndex: 0, batchId: '', ...shipment, ...day } as const;
  await pool.begin((tx) =>
    recordShipment(tx, { exportId: made.id, lease: leased.lease }, { day: '', ...shipped }, written, {
      manifestDelayMs: 0,
    }),
  );
  const next = await pool.begin((tx) => claimExportWork(tx, leased, { lease: leased.lease, turn: 0 }));
  t.match(next, { treeSize: shipment.treeSize, revision: shipment.revision + 1 });
  await pool.begin((tx) => releaseExport(tx, leased, leased.lease));
  await drain(pipeline);
  await assertExported(t, { pool, store }, made);
});

t.test('evidence that lands while a batch is claimed for the first time', async (t) => {
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  await submitFor(test, projectId, 2);
  await drain(test.another({ exports: { ...pipeline.exports, stopping: AbortSignal.abort() } }));
  const leased = await leaseNow(made.id);
  const commit = await holdOpen((tx) => claimExportWork(tx, leased, { lease: leased.lease, turn: 0 }));
  const marking = mark();
  await untilBlocked(marking);
  await commit();
  await marking;
  await letPass(test, LEASE_MS + 1);
  await drain(pipeline);
  await assertExported(t, { pool, store }, made);
});

t.test('a lease that a failure has ended can neither be released nor record', async (t) => {
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  await submitFor(test, projectId, 1);
  await drain(test.another({ exports: { ...pipeline.exports, stopping: AbortSignal.abort() } }));
  const leased = await leaseNow(made.id);
  const { id, lease } = leased;
  const failure = { id, lease, error: 'it is away', retryAfterMs: 60_000, failingAfterMs: 86_400_000 };
  await pool.begin((tx) => recordExportFailure(tx, failure));
  await pool.begin((tx) => releaseExport(tx, leased, lease));
  const [row] = await pool<{ waits: boolean }[]>`
    SELECT due_at > clock_timestamp() + interval '30 s' AS waits FROM export WHERE id = ${id}`;
  t.equal(row?.waits, true);
  t.equal(await pool.begin((tx) => recordExportFailure(tx, failure)), undefined);
  await letPass(test, 60_000);
  await drain(pipeline);
  await assertExported(t, { pool, store }, made);
});

/** A transaction that calls `before` ahead of each statement with this text. */
function interrupted(tx: Sql, text: string, before: () => Promise<unknown>): Sql {
  return new Proxy(tx, {
    apply: (target, self, args: [TemplateStringsArray, ...unknown[]]) => {
      const run = () => Reflect.apply(target as never, self, args) as Promise<unknown>;
      return args[0].join('').includes(text) ? before().then(run) : run();
    },
  });
}

t.test('a batch that settles during a claim is not passed', async (t) => {
  const projectId = await scene.newProject();
  const made = await scene.exportOf(projectId);
  witness.manner = unwilling;
  await scene.submit(projectId, 2);
  const leased = await leaseNow(made.id);
  const settle = () => pool`UPDATE batch SET status = 2, witnessed_at = clock_timestamp() WHERE status = 1`;
  await pool.begin((tx) =>
    claimExportWork(
      interrupted(tx, 'UPDATE export_cursor', () => settle().then(() => {})),
      leased,
      { lease: leased.lease, turn: 0 },
    ),
  );
  await pool.begin((tx) => releaseExport(tx, leased, leased.lease));
  witness.manner = willing;
  await letPass(test, 3_600_000);
  await drain(pipeline);
  await assertExported(t, { pool, store }, made);
});

t.test('changes that two workers mark at the same time', async (t) => {
  const projects = [await scene.newProject(), await scene.newProject()];
  const exports = [];
  for (const projectId of projects)
    for (const schema of [null, 'purl', 'other']) exports.push(await scene.exportOf(projectId, { schema }));
  const ids = await Promise.all(projects.map((projectId) => submitFor(test, projectId, 20)));
  await drain(pipeline);
  const [mine = [], theirs = []] = ids;
  for (const [i, id] of mine.entries()) {
    const change = i % 2 === 0 ? correctMetadata : undefined;
    await pool.begin((tx) => (change === undefined ? redactMetadata(tx, id) : change(tx, id, OTHER)));
    await pool.begin((tx) => redactMetadata(tx, theirs[i] ?? ''));
    await Promise.all([mark(), mark(), drain(pipeline)]);
  }
  await drain(pipeline);
  for (const made of exports) await assertExported(t, { pool, store }, made);
});
