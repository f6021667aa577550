/**
 * Consumes: the tables.
 * Commit point: none of its own; the stages have theirs.
 * Emits: every job that is due. So a lost message, or the loss of JetStream altogether, costs time and nothing else.
 * A crash leaves: nothing to clean up.
 */

import type { Job } from '../../gen/attestation/jobs/v1/jobs_pb.js';
import { findDueWork } from '../store/due.js';
import { jobSubject, sealJob, settleJob, witnessJob } from './job.js';
import type { Pipeline } from './pipeline.js';
import { runJob } from './stages.js';

/** The jobs that the tables say are due, in the order of the stages. */
export async function findDueJobs(pipeline: Pipeline): Promise<Job[]> {
  const jobs: Job[] = [];
  const here = new Set(pipeline.witnesses.map(({ witness }) => witness.name));
  for (const { logId, seal, settle, witnesses } of await findDueWork(pipeline.pool)) {
    if (seal) jobs.push(sealJob(logId));
    for (const name of witnesses.filter((witness) => here.has(witness))) jobs.push(witnessJob(logId, name));
    if (settle) jobs.push(settleJob(logId));
  }
  return jobs;
}

/** Work of one stage makes the next stage's due: seal, witness, settle. */
const ROUNDS = 3;

/** Runs what is due here and now, for while JetStream cannot be reached. One job's failure does not stop the others. */
export async function runDueJobs(pipeline: Pipeline): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const jobs = await findDueJobs(pipeline);
    for (const job of jobs) {
      await runJob(pipeline, job).catch((error: unknown) => {
        pipeline.log.error({ err: error, job: jobSubject(job) }, 'a job failed');
      });
    }
    if (jobs.length === 0) return;
  }
}
