import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import { jobSubject } from '../jobs/job.js';
import type { JobSender } from '../jobs/job-sender.js';
import { STAGES } from './consumers.js';
import type { Pipeline } from './pipeline.js';
import { findDueEventJobs, findDueLogJobs, type LocalRunner } from './reconcile.js';

/** A job still due this long after it was sent runs locally: its message may be held by a dead worker. */
const OVERDUE_MS = 3_000;

/**
 * Creates two reconcilers, for the log stages and for events, so that slow deliveries do not delay sealing. Each reads the
 * due jobs from the tables and publishes them. It runs jobs locally that JetStream does not accept or has not completed.
 */
export function createReconcilers(
  pipeline: Pipeline,
  jobs: JobSender,
  local: LocalRunner,
): [lookAtLogs: () => Promise<void>, lookAtEvents: () => Promise<void>] {
  return [
    createReconciler(() => findDueLogJobs(pipeline), jobs, local),
    createReconciler(() => findDueEventJobs(pipeline), jobs, local),
  ];
}

function createReconciler(
  findDue: () => Promise<Job[]>,
  jobs: JobSender,
  local: LocalRunner,
): () => Promise<void> {
  /** By subject, since when the job has been due on every check. */
  const dueSince = new Map<string, number>();
  return async () => {
    const due = await findDue();
    const sent = jobs.queue() !== undefined && (await sendAll(jobs, due));
    const nowMs = performance.now();
    const subjects = new Set(due.map(jobSubject));
    for (const subject of dueSince.keys()) if (!subjects.has(subject)) dueSince.delete(subject);
    for (const job of due) {
      const sinceMs = dueSince.get(jobSubject(job)) ?? nowMs;
      dueSince.set(jobSubject(job), sinceMs);
      if (!sent || nowMs - sinceMs >= OVERDUE_MS) local.run(job);
    }
  };
}

/** Publishes all jobs. Returns false, and recreates the stream, if JetStream refused one. */
async function sendAll(jobs: JobSender, due: readonly Job[]): Promise<boolean> {
  try {
    for (const job of due) await jobs.publish(job);
    return true;
  } catch {
    await jobs
      .queue()
      ?.ensure(STAGES)
      .catch(() => {});
    return false;
  }
}
