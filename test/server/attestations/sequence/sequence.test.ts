/** The gathered write: in order, exactly once, and each submission answered for itself. */
import { EventEmitter, once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { createSequencer } from '../../../../src/server/attestations/sequence/sequence.js';
import {
  type NewSubmission,
  SubmissionOutcome,
} from '../../../../src/server/attestations/sequence/sequence-submissions.js';
import {
  finish,
  keyed,
  openSequencer,
  outcomes,
  SEQUENCER_OPTIONS,
  type SequencerScene,
} from '../../../support/servers/sequencer.js';
import { until } from '../../../support/until.js';

t.test('concurrent submissions get the indexes behind the last one, each once', async (t) => {
  const scene = await openSequencer(t);
  const results = await scene.accept(scene.makeRows(120));
  t.same(new Set(outcomes(results)), new Set([SubmissionOutcome.STORED]));
  const indexes = scene.acknowledged.map(({ logIndex }) => logIndex).sort((a, b) => a - b);
  t.same(
    indexes,
    Array.from({ length: 120 }, (_, i) => i),
  );
  await finish(t, scene);
});

t.test('a retry with the same key after a lost answer gets the first submission', async (t) => {
  const scene = await openSequencer(t);
  const [row] = scene.makeRows(1, keyed('once'));
  await scene.accept([row as NewSubmission]);
  const [again, other] = [
    ...scene.makeRows(1, keyed('once')),
    ...scene.makeRows(1, keyed('once', 'another')),
  ];
  const [replayed] = await scene.accept([again as NewSubmission]);
  t.match(replayed, { value: { outcome: SubmissionOutcome.REPLAYED, resourceId: row?.id } });
  t.same(outcomes(await scene.accept([other as NewSubmission])), [SubmissionOutcome.KEY_REUSED]);
  await finish(t, scene);
});

t.test('of concurrent requests with one key one is stored and the others replay it', async (t) => {
  const scene = await openSequencer(t);
  const second = await openSequencer(t);
  const rows = scene.makeRows(8, keyed('raced'));
  const results = await scene.accept(rows);
  t.same(outcomes(results).sort(), [...Array(7).fill(SubmissionOutcome.REPLAYED), SubmissionOutcome.STORED]);
  const ids = results.map((result) => result.status === 'fulfilled' && result.value.resourceId);
  t.equal(new Set(ids).size, 1);
  await finish(t, scene);
  await finish(t, second);
});

t.test('a request waits for a concurrent duplicate and returns its submission', async (t) => {
  const scene = await openSequencer(t, { patienceMs: 10_000 });
  const holder = await scene.hold(
    (sql) => sql`SELECT pg_advisory_lock(hashtextextended(${'key_test slow'}, 0))`,
  );
  const waiting = scene.accept(scene.makeRows(1, keyed('slow')));
  const [stranger] = await scene.accept(scene.makeRows(1));
  t.match(stranger, { value: { outcome: SubmissionOutcome.STORED } });
  await holder.release();
  t.same(outcomes(await waiting), [SubmissionOutcome.STORED]);
  await finish(t, scene);
});

t.test(
  'a duplicate last seen in progress is that at its deadline, although a call is under way',
  async (t) => {
    let calls = 0;
    const assertWritable = async () => {
      if (++calls > 1) await new Promise(() => {});
    };
    const scene = await openSequencer(t, {
      patienceMs: 300,
      guard: { ...SEQUENCER_OPTIONS.guard, assertWritable },
    });
    const holder = await scene.hold(
      (sql) => sql`SELECT pg_advisory_lock(hashtextextended(${'key_test slow'}, 0))`,
    );
    t.same(outcomes(await scene.accept(scene.makeRows(1, keyed('slow')))), ['IDEMPOTENCY_IN_PROGRESS']);
    await holder.release();
  },
);

/** Lets a key expire: what it is answered with from now on may be another submission. */
async function expire(scene: SequencerScene, key: string): Promise<void> {
  await scene.pool`UPDATE idempotency_key SET created_at = created_at - interval '2 days' WHERE key = ${key}`;
  for (const one of scene.acknowledged) if (one.idempotencyKey === key) delete one.idempotencyKey;
}

t.test('of the keys of one call each is new, known or expired by itself', async (t) => {
  const scene = await openSequencer(t);
  const row = (key: string, request?: string) => scene.makeRows(1, keyed(key, request))[0] as NewSubmission;
  const [known, expired] = [row('known'), row('expired')];
  await scene.accept([known, expired]);
  await expire(scene, 'expired');
  const later = row('expired', 'another');
  t.same(
    outcomes(
      await scene.accept([row('new'), row('known'), later, row('known', 'another'), ...scene.makeRows(1)]),
    ),
    [
      SubmissionOutcome.STORED,
      SubmissionOutcome.REPLAYED,
      SubmissionOutcome.STORED,
      SubmissionOutcome.KEY_REUSED,
      SubmissionOutcome.STORED,
    ],
  );
  const claims =
    await scene.pool`SELECT key, resource_id AS id FROM idempotency_key WHERE key <> 'new' ORDER BY key`;
  t.same(
    [...claims],
    [
      { key: 'expired', id: later.id },
      { key: 'known', id: known.id },
    ],
  );
  const [again] = await scene.accept([row('expired', 'another')]);
  t.match(again, { value: { outcome: SubmissionOutcome.REPLAYED, resourceId: later.id } });
  await finish(t, scene);
});

t.test('a key that is pruned while it is claimed is new', async (t) => {
  const scene = await openSequencer(t, { patienceMs: 10_000 });
  await scene.accept(scene.makeRows(1, keyed('old')));
  await expire(scene, 'old');
  const pruned = new EventEmitter();
  const pruning = scene.pool.begin(async (tx) => {
    await tx`DELETE FROM idempotency_key`;
    pruned.emit('deleted');
    await once(pruned, 'commit');
  });
  await once(pruned, 'deleted');
  const claiming = scene.accept(scene.makeRows(1, keyed('old')));
  await until('the call waits for the row', async () => {
    const waiting = await scene.pool`
      SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted
      AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`;
    return waiting.length > 0;
  });
  pruned.emit('commit');
  await pruning;
  t.same(outcomes(await claiming), [SubmissionOutcome.STORED]);
  await finish(t, scene);
});

t.test('a call that does not return delays others by little', async (t) => {
  const gate = new EventEmitter();
  let calls = 0;
  const assertWritable = async () => {
    if (calls++ === 0) await once(gate, 'open');
  };
  const scene = await openSequencer(t, { guard: { ...SEQUENCER_OPTIONS.guard, assertWritable } });
  const stuck = scene.accept(scene.makeRows(1));
  await until('the first call has begun', () => calls === 1);
  t.same(outcomes(await scene.accept(scene.makeRows(1))), [SubmissionOutcome.STORED]);
  gate.emit('open');
  t.same(outcomes(await stuck), [SubmissionOutcome.STORED]);
  await finish(t, scene);
});

t.test(
  'rows share a call with others that are being signed, but do not wait for them for long',
  async (t) => {
    let nowMs = 0;
    let calls = 0;
    const assertWritable = async () => {
      calls++;
    };
    const scene = await openSequencer(t, {
      clock: () => nowMs,
      guard: { ...SEQUENCER_OPTIONS.guard, assertWritable },
    });
    const signed = scene.sequencer.announce();
    const first = scene.accept(scene.makeRows(1));
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    const second = scene.accept(scene.makeRows(1));
    signed();
    const results = [...(await first), ...(await second)];
    t.same(outcomes(results), [SubmissionOutcome.STORED, SubmissionOutcome.STORED]);
    t.equal(calls, 1);
    scene.sequencer.announce();
    const waiting = scene.accept(scene.makeRows(1));
    nowMs += 1_000;
    t.same(outcomes(await waiting), [SubmissionOutcome.STORED]);
    await finish(t, scene);
  },
);

t.test("requests beyond the queue's bound are rejected at once, and queued ones are stored", async (t) => {
  const limits = { maxRows: 10, maxBytes: 1024 * 1024, maxInFlight: 1, enoughRows: 64, maxQueuedRows: 30 };
  const scene = await openSequencer(t, { limits });
  const results = outcomes(await scene.accept(scene.makeRows(50)));
  t.equal(results.filter((outcome) => outcome === SubmissionOutcome.STORED).length, 30);
  t.equal(results.filter((outcome) => outcome === 'SERVICE_UNAVAILABLE').length, 20);
  await finish(t, scene);
});

t.test('closing waits for accepted requests', async (t) => {
  const scene = await openSequencer(t);
  const accepted = scene.accept(scene.makeRows(30));
  await scene.sequencer.close();
  t.same(new Set(outcomes(await accepted)), new Set([SubmissionOutcome.STORED]));
  await finish(t, scene);
});

t.test('the limits of a key hold exactly over two processes', async (t) => {
  const scene = await openSequencer(t);
  const other = createSequencer({
    pool: scene.pool,
    logId: scene.logId,
    ...SEQUENCER_OPTIONS,
    limits: { ...SEQUENCER_OPTIONS.limits, maxRows: 7 },
  });
  const limits = { perSecond: 1_000_000, perHour: 1_000_000, perDay: 25 };
  const [here, there] = await Promise.all([
    scene.accept(scene.makeRows(40, { limits })),
    Promise.all(scene.makeRows(40, { limits }).map((row) => other.add(row))),
  ]);
  const all = [...outcomes(here), ...there.map(({ outcome }) => outcome)];
  t.equal(all.filter((outcome) => outcome === SubmissionOutcome.STORED).length, 25);
  t.equal(all.filter((outcome) => outcome === SubmissionOutcome.LIMITED).length, 55);
  await finish(t, scene);
});
