/** The sequencers of a process: one a log, counted and closed together, with wakes that a busy log shares. */
import { once } from 'node:events';
import t from 'tap';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import {
  type NewSubmission,
  SubmissionOutcome,
} from '../../../../src/server/attestations/sequence/sequence-submissions.js';
import { createSequencers } from '../../../../src/server/attestations/sequence/sequencers.js';
import type { SequencerDeps } from '../../../../src/server/attestations/sequence/write-rows.js';
import { openSequencer, SEQUENCER_OPTIONS } from '../../../support/servers/sequencer.js';
import { until } from '../../../support/until.js';

const { limits, retentionMs, patienceMs, guard, guardCommit, onLackingPartition } = SEQUENCER_OPTIONS;
/** The documented least time between two wakes of a log. */
const WAKE_MS = 100;
/** Node counts timers in whole milliseconds. */
const TIMER_EARLY_MS = 2;

const LIVE = { projectId: 'prj_1', environment: Environment.LIVE } as const;
const TEST = { projectId: 'prj_1', environment: Environment.TEST } as const;

/** Sequencers of two logs of one database, with the wakes that they have sent. */
async function openAll(t: Parameters<typeof openSequencer>[0], change: Partial<SequencerDeps> = {}) {
  const scene = await openSequencer(t);
  const [other] = await scene.pool<{ id: number }[]>`SELECT id FROM log WHERE id <> ${scene.logId} LIMIT 1`;
  const logs = new Map([
    [Environment.LIVE, { id: scene.logId }],
    [Environment.TEST, { id: other?.id ?? 0 }],
  ]);
  const known = new Set<number>();
  const woken: { logId: number; atMs: number }[] = [];
  const sequencers = createSequencers(
    {
      peek: ({ environment }) => (known.has(environment) ? logs.get(environment) : undefined),
      get: async ({ environment }) => {
        known.add(environment);
        return logs.get(environment) as { id: number };
      },
    },
    { pool: scene.pool, limits, retentionMs, patienceMs, guard, guardCommit, onLackingPartition, ...change },
    (logId) => woken.push({ logId, atMs: performance.now() }),
  );
  return { scene, logs, sequencers, woken };
}

t.test('a log has one sequencer, and none before the log is known', async (t) => {
  const { sequencers } = await openAll(t);
  t.equal(sequencers.of.peek(LIVE), undefined);
  const live = await sequencers.of.get(LIVE);
  t.equal(await sequencers.of.get(LIVE), live, 'found again');
  t.equal(sequencers.of.peek(LIVE), live, 'known');
  t.not(await sequencers.of.get(TEST), live, 'the other log has its own');
});

t.test('queues are counted over all logs, and closing waits for each of them', async (t) => {
  const gate = new EventTarget();
  const opened = once(gate, 'open');
  const waits = { ...guard, assertWritable: async () => void (await opened) };
  const oneByOne = { ...limits, maxRows: 1, maxInFlight: 1, enoughRows: 1 };
  const { scene, sequencers } = await openAll(t, { guard: waits, limits: oneByOne });
  const environments = [Environment.LIVE, Environment.TEST] as const;
  const results = [];
  for (const environment of environments) {
    const sequencer = await sequencers.of.get({ projectId: 'prj_1', environment });
    for (const row of scene.makeRows(3)) results.push(sequencer.add(row));
  }
  // The first row of each log is in a call.
  await until('two calls hold', () => sequencers.queued() === 4);
  let isClosed = false;
  const closing = sequencers.close().then(() => {
    isClosed = true;
  });
  t.equal(isClosed, false);
  gate.dispatchEvent(new Event('open'));
  await closing;
  t.equal(sequencers.queued(), 0);
  const outcomes = (await Promise.all(results)).map(({ outcome }) => outcome);
  t.same(outcomes, Array(6).fill(SubmissionOutcome.STORED));
});

t.test('calls of a log share its wakes, and the last call is followed by one', async (t) => {
  const { scene, logs, sequencers, woken } = await openAll(t);
  const [live, test] = [await sequencers.of.get(LIVE), await sequencers.of.get(TEST)];
  const CALLS = 40;
  const startedMs = performance.now();
  for (const row of scene.makeRows(CALLS)) await live.add(row);
  const [alone] = scene.makeRows(1);
  const beforeMs = performance.now();
  await test.add(alone as NewSubmission);
  const last = (environment: Environment) =>
    woken.findLast(({ logId }) => logId === logs.get(environment)?.id);
  await until('the other log has a wake of its own', () => (last(Environment.TEST)?.atMs ?? 0) > beforeMs);
  const afterMs = performance.now();
  for (const row of scene.makeRows(2)) await live.add(row);
  await until('a call after a wake has its own', () => (last(Environment.LIVE)?.atMs ?? 0) > afterMs);
  const ofLive = woken.filter(({ logId }) => logId === logs.get(Environment.LIVE)?.id);
  // By all of them: a busy machine delays the callbacks of single ones, and so shortens the time between two.
  const spanMs = (ofLive.at(-1)?.atMs ?? 0) - startedMs;
  t.ok(ofLive.length - 1 <= spanMs / (WAKE_MS - TIMER_EARLY_MS), `${ofLive.length} wakes in ${spanMs} ms`);
});
