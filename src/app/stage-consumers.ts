import type { Job } from '../../gen/attestation/jobs/v1/jobs_pb.js';
import { jobSubject, type Stage } from '../pipeline/job.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { findDueLogJobs } from '../pipeline/reconcile.js';
import { runJob } from '../pipeline/stages.js';
import { consume, type StopConsuming } from '../queue/consume.js';
import type { Queue } from '../queue/jetstream.js';
import { type JobSender, readJob } from './jobs.js';

/** How many jobs of a stage one worker has under way: a slow witness must not hold up the others. */
const CONCURRENCY: Readonly<Record<Stage, number>> = {
  seal: 4,
  witness: 16,
  settle: 4,
  notify: 4,
  webhook: 256,
};
/** The stages that are worked on from the queue. */
export const STAGES = Object.keys(CONCURRENCY) as Stage[];
/** Stages that look once more for what came while they worked; for others the next look is soon enough. */
const LOOKED_AT_AGAIN: readonly Stage[] = ['seal', 'witness'];

/** Starts to take jobs of every stage. @returns what ends each */
export function consumeStages(pipeline: Pipeline, queue: Queue, jobs: JobSender): StopConsuming[] {
  return STAGES.map((stage) => consumeStage(pipeline, queue, jobs, stage));
}

function consumeStage(pipeline: Pipeline, queue: Queue, jobs: JobSender, stage: Stage): StopConsuming {
  return consume(
    queue,
    {
      stage,
      concurrency: CONCURRENCY[stage],
      handle: (payload) => runJob(pipeline, readJob(payload)),
      afterDone: LOOKED_AT_AGAIN.includes(stage)
        ? (payload) => sendAgainIfDue(pipeline, jobs, readJob(payload))
        : async () => {},
    },
    pipeline.log,
  );
}

/** What came up while a job was worked on could not be sent, because its like was still there. */
async function sendAgainIfDue(pipeline: Pipeline, jobs: JobSender, done: Job): Promise<void> {
  const due = await findDueLogJobs(pipeline);
  for (const job of due) if (jobSubject(job) === jobSubject(done)) jobs.send(job);
}
