/**
 * Consumes: a batch's transitions whose events are not enqueued.
 * Commit point: the transaction that stores a range for each subscription and marks the transition.
 * Emits: a webhook job per subscription.
 * A crash leaves: the transition unmarked, or its ranges stored; the reconciler finds either.
 */
import { DONE, type Outcome } from '../queue/outcome.js';
import { lockUnnotified, notifyTransition } from '../store/webhooks/webhook-ranges.js';
import { webhookJob } from './jobs/job.js';
import type { LogPipeline } from './pipeline.js';
import { eventTypeOf } from './webhooks/event.js';

/** Enqueues the events of a batch's transitions for the subscriptions of its projects. */
export async function notify(pipeline: LogPipeline, batchId: string): Promise<Outcome> {
  const webhookIds = await pipeline.pool.begin(async (tx) => {
    const due = new Set<string>();
    for (const row of await lockUnnotified(tx, batchId)) {
      for (const id of await notifyTransition(tx, row, eventTypeOf(row.transition))) due.add(id);
    }
    return due;
  });
  for (const id of webhookIds) pipeline.send(webhookJob(id));
  return DONE;
}
