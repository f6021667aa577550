import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import { jobSubject } from '../jobs/job.js';
import type { JobSender } from '../jobs/job-sender.js';
import { STAGES } from './consumers.js';
import type { Pipeline } from './pipeline.js';
import { findDueEventJobs, findDueLogJobs, type LocalRunner } from './reconcile.js';

/** A job still due this long after it was sent, at the next check, runs locally: its message may be held by a dead worker. */
const OVERDUE_MS = 900;
/**
 * Stages whose jobs are not due while a living worker has leased them. If an equal message is pending, its worker has died or
 * has not begun; the job runs locally at once, and one of the two gets the lease.
 */
const LEASED: ReadonlySet<Job['stage']['case']> = new Set(['witness', 'webhook', 'ship']);

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
    const sent = jobs.queue() === undefined ? undefined : await sendAll(jobs, due);
    const nowMs = performance.now();
    const subjects = new Set(due.map(jobSubject));
    for (const subject of dueSince.keys()) if (!subjects.has(subject)) dueSince.delete(subject);
    for (const job of due) {
      const sinceMs = dueSince.get(jobSubject(job)) ?? nowMs;
      dueSince.set(jobSubject(job), sinceMs);
      const isHeld = LEASED.has(job.stage.case) && sent?.has(job) === false;
      if (sent === undefined || isHeld || nowMs - sinceMs >= OVERDUE_MS) local.run(job);
    }
  };
}

/**
 * Publishes all jobs.
 *
 * @returns those of which no equal message was pending; undefined, after recreating the stream, if JetStream refused one
 */
async function sendAll(jobs: JobSender, due: readonly Job[]): Promise<Set<Job> | undefined> {
  const sent = new Set<Job>();
  try {
    for (const job of due) if (await jobs.publish(job)) sent.add(job);
    return sent;
  } catch {
    await jobs
      .queue()
      ?.ensure(STAGES)
      .catch(() => {});
    return undefined;
  }
}
