/** Faults of the gathered write, each at its exact point: nothing is lost, nothing occurs twice, strangers are not harmed. */
import t from 'tap';
import {
  type NewSubmission,
  SubmissionOutcome,
} from '../../../src/server/attestations/sequence/sequence-submissions.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { freezeLog, LogLock } from '../../../src/server/log/store/logs.js';
import type { Break } from '../../support/breaking/proxy.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { drain } from '../../support/pipeline.js';
import {
  finish,
  keyed,
  openSequencer,
  outcomes,
  SEQUENCER_OPTIONS,
  type SequencerScene,
} from '../../support/servers/sequencer.js';
import { until } from '../../support/until.js';

for (const when of ['before the request arrives', 'before the answer arrives'] as Break[]) {
  t.test(`a connection cut ${when} costs no submission and makes none twice`, async (t) => {
    const scene = await openSequencer(t);
    await scene.accept(scene.makeRows(2));
    const rows = [
      ...scene.makeRows(10),
      ...scene.makeRows(3, {}).map((row, i) => ({ ...row, ...keyed(`k${i}`) })),
    ];
    const broken = scene.proxy.breakNext(when, (sent) => sent.includes(rows[0]?.id ?? ''));
    const results = await scene.accept(rows);
    await broken;
    t.same(
      outcomes(results),
      rows.map(() => SubmissionOutcome.STORED),
    );
    const [count] = await scene.pool`SELECT count(*) AS n FROM submission`;
    t.equal(count?.n, 15);
    const counted = await scene.pool`SELECT n_day FROM rate_counter ORDER BY second DESC LIMIT 1`;
    t.same(counted, [{ n_day: 15 }], 'each is counted once');
    await finish(t, scene);
  });
}

/** Tries until so many are all stored: on a slow machine one try may take longer than the patience of the scene. */
async function untilStored(scene: SequencerScene, count: number): Promise<void> {
  await until(`${count} are stored`, async () =>
    outcomes(await scene.accept(scene.makeRows(count))).every(
      (outcome) => outcome === SubmissionOutcome.STORED,
    ),
  );
}

t.test('one bad row fails alone, and the others of its flush are stored', async (t) => {
  const scene = await openSequencer(t);
  await scene.pool`ALTER TABLE submission ADD CHECK (build <> 'bad')`;
  const rows = scene.makeRows(40);
  const bad = rows[17];
  if (bad !== undefined) bad.build = 'bad';
  const results = await scene.accept(rows);
  t.same(
    outcomes(results),
    rows.map((row) => (row === bad ? '23514' : SubmissionOutcome.STORED)),
  );
  await finish(t, scene);
});

t.test(
  'a stuck idempotency key affects only its own caller, who gets an error after a timeout',
  async (t) => {
    const scene = await openSequencer(t, { patienceMs: 200 });
    const lock = (sql: Pool) => sql`SELECT pg_advisory_lock(hashtextextended(${'key_test stuck'}, 0))`;
    const holder = await scene.hold(lock);
    const rows = [
      ...scene.makeRows(20),
      ...scene.makeRows(1, keyed('stuck')),
      ...scene.makeRows(1, keyed('free')),
    ];
    const results = outcomes(await scene.accept(rows));
    t.same(results, [
      ...Array(20).fill(SubmissionOutcome.STORED),
      'IDEMPOTENCY_IN_PROGRESS',
      SubmissionOutcome.STORED,
    ]);
    await holder.release();
    t.same(outcomes(await scene.accept(scene.makeRows(1, keyed('stuck')))), [SubmissionOutcome.STORED]);
    await finish(t, scene);
  },
);

t.test('a create returns unavailable and stores nothing while the log lock is held', async (t) => {
  const scene = await openSequencer(t, { patienceMs: 300 }, 150);
  const holder = await scene.hold((sql) => sql`SELECT pg_advisory_lock(${LogLock.WRITE}, ${scene.logId})`);
  const results = await scene.accept(scene.makeRows(5));
  t.same(new Set(outcomes(results)), new Set(['SERVICE_UNAVAILABLE']));
  t.equal((await scene.pool`SELECT FROM submission`).length, 0);
  await holder.release();
  await untilStored(scene, 1);
  await finish(t, scene);
});

t.test('a write that never returns is given up when the patience since its arrival ends', async (t) => {
  const scene = await openSequencer(t, { patienceMs: 3_000 }, 60_000);
  const holder = await scene.hold((sql) => sql`SELECT pg_advisory_lock(${LogLock.WRITE}, ${scene.logId})`);
  const [early, late] = scene.makeRows(2);
  const order: string[] = [];
  const add = (row: NewSubmission | undefined, arrivedMs: number, name: string) =>
    t
      .rejects(scene.sequencer.add(row as NewSubmission, arrivedMs), {
        message: 'the database did not confirm the write; try again with the same Idempotency-Key',
      })
      .then(() => order.push(name));
  const both = [add(late, Date.now(), 'late'), add(early, Date.now() - 2_500, 'early')];
  await Promise.all(both);
  t.same(order, ['early', 'late']);
  await holder.release();
  t.same(outcomes(await scene.accept(scene.makeRows(1))), [SubmissionOutcome.STORED]);
  await finish(t, scene);
});

t.test('a write that times out once is retried', async (t) => {
  const scene = await openSequencer(t, { patienceMs: 10_000 }, 150);
  const holder = await scene.hold((sql) => sql`SELECT pg_advisory_lock(${LogLock.WRITE}, ${scene.logId})`);
  const waiting = scene.accept(scene.makeRows(3));
  const cancelled = scene.proxy.breakNext('before the request arrives', (sent) => sent.includes('sub_'));
  await cancelled;
  await holder.release();
  t.same(outcomes(await waiting), Array(3).fill(SubmissionOutcome.STORED));
  await finish(t, scene);
});

t.test(
  'while the database is unavailable callers get Retry-After, and afterwards everything continues',
  async (t) => {
    const scene = await openSequencer(t, { patienceMs: 300 });
    await scene.accept(scene.makeRows(3));
    scene.proxy.setOpen(false);
    const results = await scene.accept(scene.makeRows(4));
    t.same(new Set(outcomes(results)), new Set(['SERVICE_UNAVAILABLE']));
    const [first] = results;
    t.match(first, { reason: { headers: { 'retry-after': /^\d+$/ } } });
    scene.proxy.setOpen(true);
    await untilStored(scene, 4);
    await finish(t, scene);
  },
);

t.test('a check before the write that fails for the database is retried too', async (t) => {
  let failures = 2;
  const assertWritable = async () => {
    if (failures-- > 0) throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
  };
  const scene = await openSequencer(t, { guard: { ...SEQUENCER_OPTIONS.guard, assertWritable } });
  t.same(outcomes(await scene.accept(scene.makeRows(2))), [
    SubmissionOutcome.STORED,
    SubmissionOutcome.STORED,
  ]);
  await finish(t, scene);
});

t.test('a frozen log accepts no submission', async (t) => {
  const scene = await openSequencer(t);
  await scene.accept(scene.makeRows(3));
  await drain(scene.pipeline);
  t.equal(await freezeLog(scene.pool, scene.logId, 'a test'), true);
  t.equal(await freezeLog(scene.pool, scene.logId, 'another'), false);
  const results = await scene.accept(scene.makeRows(2));
  t.same(outcomes(results), ['SERVICE_UNAVAILABLE', 'SERVICE_UNAVAILABLE']);
  await assertConsistent(t, scene);
});
