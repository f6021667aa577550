/** What the tables say of batches and witnesses. */
import type { TestPipeline } from '../pipeline.js';

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
