/**
 * Consumes: published batches that evidence covers, or whose deadline has passed.
 * Commit point: the statement that changes the status and records the transition.
 * Emits: a notify job per batch.
 * A crash leaves: the batch unchanged; the reconciler finds it again.
 */

import { notifyJob } from '../jobs/job.js';
import { DONE, type Outcome } from '../queue/outcome.js';
import type { LogStages } from './log-stages.js';
import { settleOverdue, settleWitnessed, type Transition } from './store/settle.js';

const BATCHES_PER_STATEMENT = 1_000;

/** Settles every batch of a log that is due. */
export async function settle(
  pipeline: Pick<LogStages, 'pool' | 'send' | 'observeSettled'>,
  logId: number,
): Promise<Outcome> {
  for (const step of [settleWitnessed, settleOverdue]) {
    let moved: Transition[];
    do {
      moved = await step(pipeline.pool, logId, BATCHES_PER_STATEMENT);
      for (const transition of moved) {
        pipeline.observeSettled(transition);
        pipeline.send(notifyJob(transition.batchId));
      }
    } while (moved.length === BATCHES_PER_STATEMENT);
  }
  return DONE;
}
