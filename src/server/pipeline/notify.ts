/**
 * Consumes: a batch's transitions whose events are not enqueued.
 * Commit point: the transaction that stores a range for each subscription, makes exports due and marks the transition.
 * Emits: a webhook job per subscription, a ship job per export.
 * A crash leaves: the transition unmarked, or its ranges stored; the reconciler finds either.
 */
import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import { markAllChanges } from '../exports/ship/mark-changes.js';
import { markTransition } from '../exports/store/export-changes.js';
import { jobSubject, shipJob, webhookJob } from '../jobs/job.js';
import type { LogStages } from '../log/log-stages.js';
import { DONE, type Outcome } from '../queue/outcome.js';
import { eventTypeOf } from '../webhooks/delivery/event.js';
import { lockUnnotified, notifyTransition } from '../webhooks/store/webhook-ranges.js';

/**
 * Enqueues the events of a batch's transitions for the subscriptions of its projects, and makes their exports due. Marks
 * what has changed first: marked after the batch was claimed, its evidence would ship it a second time.
 */
export async function notify(pipeline: Pick<LogStages, 'pool' | 'send'>, batchId: string): Promise<Outcome> {
  const changed = await markAllChanges(pipeline.pool);
  const jobs = await pipeline.pool.begin(async (tx) => {
    const due: Job[] = [...changed];
    for (const row of await lockUnnotified(tx, batchId)) {
      due.push(...(await notifyTransition(tx, row, eventTypeOf(row.transition))).map(webhookJob));
      due.push(...(await markTransition(tx, row.logId, row.treeSize)).map(shipJob));
    }
    return new Map(due.map((job) => [jobSubject(job), job]));
  });
  for (const job of jobs.values()) pipeline.send(job);
  return DONE;
}
