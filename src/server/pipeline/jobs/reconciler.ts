import type { Job } from '../../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { Pipeline } from '../pipeline.js';
import { STAGES } from './consumers.js';
import { jobSubject } from './job.js';
import type { JobSender } from './job-sender.js';
import { findDueEventJobs, findDueLogJobs, type LocalRunner } from './reconcile.js';

/** A job that is still due so long after it was sent is run here: its message may be with a worker that died. */
const OVERDUE_MS = 3_000;

/**
 * Makes the looks at the tables for what is due: of the logs, and of events apart, so that trouble with deliveries holds
 * up no sealing. Each hands on what it finds; what JetStream does not take is run here, and so is what it has not
 * brought to an end.
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
  /** By subject, since when the job was found due each time. */
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

/** Whether JetStream took all of them; the stream is made again for the next time when it did not. */
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
