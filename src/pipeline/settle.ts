/**
 * Consumes: published batches that evidence now covers, or whose deadline has passed.
 * Commit point: the statement that changes the status and records the transition.
 * Emits: nothing yet that leaves the tables; the transitions are what notifications are made of.
 * A crash leaves: the batch as it was; the reconciler comes back to it.
 */

import { DONE, type Outcome } from '../queue/outcome.js';
import { settleOverdue, settleWitnessed } from '../store/settle.js';
import type { Pipeline } from './pipeline.js';

const BATCHES_PER_STATEMENT = 1_000;

/** Settles every batch of a log that is due. */
export async function settle(pipeline: Pipeline, logId: number): Promise<Outcome> {
  for (const step of [settleWitnessed, settleOverdue]) {
    let moved: number;
    do {
      moved = (await step(pipeline.pool, logId, BATCHES_PER_STATEMENT)).length;
    } while (moved === BATCHES_PER_STATEMENT);
  }
  return DONE;
}
