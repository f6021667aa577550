/**
 * Consumes: changes of evidence and metadata that shipped objects contain.
 * Commit point: the transaction that gives the shipments a new wanted revision and deletes the changes.
 * Emits: a ship job per export that is due.
 * A crash leaves: the changes, or exports that are due; the reconciler finds either.
 */
import type { Job } from '../../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { Pool } from '../../database/connect.js';
import { shipJob } from '../../jobs/job.js';
import type { LogStages } from '../../log/log-stages.js';
import { DONE, type Outcome } from '../../queue/outcome.js';
import { markChanges } from '../store/export-changes.js';

/** Marks the shipments that changes concern. */
export async function markExportChanges({ pool, send }: Pick<LogStages, 'pool' | 'send'>): Promise<Outcome> {
  for (const job of await markAllChanges(pool)) send(job);
  return DONE;
}

/** Marks the shipments that changes concern. @returns the jobs to ship them */
export async function markAllChanges(pool: Pool): Promise<Job[]> {
  const due = new Map<string, Job>();
  for (let isMore = true; isMore; ) {
    const marked = await pool.begin((tx) => markChanges(tx));
    for (const one of marked.due) due.set(one.id, shipJob(one));
    isMore = marked.isMore;
  }
  return [...due.values()];
}
