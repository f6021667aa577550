/** A sequencer over a database of its own, reached through a proxy. */
import type { Test } from 'tap';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { createSequencer, type Sequencer } from '../../../src/server/attestations/sequence/sequence.js';
import {
  type NewSubmission,
  type SequencedRow,
  SubmissionOutcome,
} from '../../../src/server/attestations/sequence/sequence-submissions.js';
import type { SequencerDeps } from '../../../src/server/attestations/sequence/write-rows.js';
import { ApiError } from '../../../src/server/core/errors.js';
import { connectPool, type Pool } from '../../../src/server/database/connect.js';
import { errorCode } from '../../../src/server/database/database-errors.js';
import { startProxy, type TcpProxy } from '../breaking/proxy.js';
import { type Acknowledged, assertConsistent } from '../judging/consistent.js';
import { drain, makePipeline, makeWitness, type TestPipeline } from '../pipeline.js';
import { testDatabase } from './shared-servers.js';
import { acknowledge } from './submission-rows.js';

export type SequencerScene = TestPipeline & {
  proxy: TcpProxy;
  sequencer: Sequencer;
  /** Stores rows at once and notes what was acknowledged. */
  accept(rows: readonly NewSubmission[]): Promise<PromiseSettledResult<SequencedRow>[]>;
  acknowledged: Acknowledged[];
  /** A session that holds what it takes until it is released. */
  hold(run: (sql: Pool) => Promise<unknown>): Promise<{ release: () => Promise<void> }>;
};

/** What a sequencer has but its pool and its log. */
export const SEQUENCER_OPTIONS: Omit<SequencerDeps, 'pool' | 'logId'> = {
  limits: { maxRows: 500, maxBytes: 1024 * 1024, maxInFlight: 2, enoughRows: 64, maxQueuedRows: 5_000 },
  retentionMs: 86_400_000,
  patienceMs: 2_000,
  clock: Date.now,
  wake: () => {},
  onLackingPartition: () => {},
  guard: { assertWritable: async () => {}, recordAcknowledged: () => {} },
  guardCommit: (call) => call(),
};

export async function openSequencer(
  t: Test,
  change: Partial<SequencerDeps> = {},
  statementTimeoutMs = 5_000,
): Promise<SequencerScene> {
  const databaseUrl = new URL(await testDatabase(t));
  const test = await makePipeline(t, {
    databaseUrl: databaseUrl.href,
    witnesses: [await makeWitness(t, 'one')],
  });
  const proxy = await startProxy({ host: databaseUrl.hostname, port: Number(databaseUrl.port) });
  t.teardown(proxy.close);
  const proxied = new URL(databaseUrl);
  proxied.port = String(proxy.port);
  const pool = connectPool({ url: proxied.href, name: 'accept', max: 4, statementTimeoutMs });
  t.teardown(() => pool.end({ timeout: 1 }));
  const sequencer = createSequencer({
    pool,
    logId: test.logId,
    ...SEQUENCER_OPTIONS,
    ...change,
  });
  const acknowledged: Acknowledged[] = [];
  const accept: SequencerScene['accept'] = async (rows) => {
    const results = await Promise.allSettled(rows.map((row) => sequencer.add(row)));
    for (const [i, result] of results.entries()) {
      const row = rows[i];
      if (
        row !== undefined &&
        result.status === 'fulfilled' &&
        result.value.outcome === SubmissionOutcome.STORED
      )
        acknowledged.push(acknowledge(row, result.value.logIndex ?? -1));
    }
    return results;
  };
  const hold: SequencerScene['hold'] = async (run) => {
    const session = connectPool({
      url: databaseUrl.href,
      name: 'holder',
      max: 1,
      statementTimeoutMs: 60_000,
    });
    t.teardown(() => session.end({ timeout: 1 }));
    await run(session);
    return { release: () => session.end({ timeout: 1 }) };
  };
  return { ...test, proxy, sequencer, accept, acknowledged, hold };
}

export const outcomes = (results: readonly PromiseSettledResult<SequencedRow>[]) =>
  results.map((result) => (result.status === 'fulfilled' ? result.value.outcome : codeOf(result.reason)));

function codeOf(error: unknown): string {
  return error instanceof ApiError ? (ErrorCode[error.code] ?? '') : (errorCode(error) ?? String(error));
}

export async function finish(t: Test, scene: SequencerScene): Promise<void> {
  await drain(scene.pipeline);
  await assertConsistent(t, scene);
}

export const keyed = (key: string, request = 'the same') => ({
  idempotency: { key, requestHash: Buffer.alloc(32, request).toString('hex') },
});
