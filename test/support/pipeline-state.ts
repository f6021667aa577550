/** A test pipeline's tables: what they say, and how time is let pass in them. */
import type { Test } from 'tap';
import { makePipeline, type TestPipeline, type TestPipelineOptions, type TestWitness } from './pipeline.js';
import { testDatabase } from './servers.js';

/** A pipeline over a database of its own. */
export async function openPipeline(
  t: Test,
  witnesses: readonly TestWitness[],
  more?: Partial<TestPipelineOptions>,
): Promise<TestPipeline> {
  return makePipeline(t, { databaseUrl: await testDatabase(t), witnesses, ...more });
}

/** Lets time pass: everything that stands in the tables is older by so much. */
export async function age({ pool }: TestPipeline, ms: number): Promise<void> {
  const back = pool`${ms}::bigint * interval '1 millisecond'`;
  await pool`UPDATE batch SET sealed_at = sealed_at - ${back}, deadline_at = deadline_at - ${back}`;
  await pool`
    UPDATE witness_state SET next_attempt_at = next_attempt_at - ${back}, leased_until = leased_until - ${back},
                             last_failed_at = last_failed_at - ${back}`;
}

/** How long until the witness may be asked again, about. */
export async function nextAttemptMs({ pool }: TestPipeline, witness: string): Promise<number> {
  const [row] = await pool<{ ms: number }[]>`
    SELECT (extract(epoch FROM next_attempt_at - clock_timestamp()) * 1000)::bigint AS ms FROM witness_state
    WHERE witness = ${witness} AND log_id = 1`;
  return row?.ms ?? Number.NaN;
}

/** The statuses of all batches, in the log's order. */
export async function statuses({ pool }: TestPipeline): Promise<number[]> {
  const rows = await pool<{ status: number }[]>`SELECT status FROM batch ORDER BY tree_size`;
  return rows.map(({ status }) => status);
}

/** `<tree size>:<status>` of all transitions, in the order in which they happened. */
export async function history({ pool }: TestPipeline): Promise<string[]> {
  const rows = await pool<{ step: string }[]>`
    SELECT tree_size || ':' || status AS step FROM batch_transition ORDER BY at, tree_size`;
  return rows.map(({ step }) => step);
}
