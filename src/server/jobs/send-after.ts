import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';

/** Publishes a job without waiting for it. The reconciler finds a lost one again. */
export type SendJob = (job: Job) => void;

/**
 * Publishes the job of a change once it is committed, also for a replay, whose first job may be lost. Returns the change's
 * response; if the change fails, no job is published.
 */
export async function sendAfter<T>(send: SendJob, job: Job, change: Promise<T>): Promise<T> {
  const response = await change;
  send(job);
  return response;
}
