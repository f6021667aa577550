import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { OutageLogs } from '../core/outage-log.js';
import type { Stage } from '../jobs/job.js';
import { type JobSender, readJob } from '../jobs/job-sender.js';
import { toleratingOutage } from '../jobs/tolerate-outage.js';
import { consume, type StopConsuming } from '../queue/consume.js';
import type { Queue } from '../queue/jetstream.js';
import { type Outcome, retryAfter } from '../queue/outcome.js';
import type { Pipeline } from './pipeline.js';
import { isDueAgain } from './reconcile.js';
import { runJob } from './stages.js';

/** Concurrent jobs of each stage in one worker: a slow witness must not block the others. */
const CONCURRENCY: Readonly<Record<Stage, number>> = {
  seal: 4,
  witness: 16,
  settle: 4,
  notify: 4,
  webhook: 256,
  revise: 1,
  ship: 256,
};
/** The stages with a queue consumer. */
export const STAGES = Object.keys(CONCURRENCY) as Stage[];
const DATABASE_AWAY_MS = 1_000;

/** Starts a consumer for every stage. @returns the functions that stop them */
export function consumeStages(
  pipeline: Pipeline,
  queue: Queue,
  jobs: JobSender,
  outageLogs: OutageLogs,
): StopConsuming[] {
  return STAGES.map((stage) => consumeStage(pipeline, queue, jobs, outageLogs, stage));
}

function consumeStage(
  pipeline: Pipeline,
  queue: Queue,
  jobs: JobSender,
  outageLogs: OutageLogs,
  stage: Stage,
): StopConsuming {
  const { log } = pipeline;
  const later = retryAfter(DATABASE_AWAY_MS);
  return consume(
    queue,
    {
      stage,
      concurrency: CONCURRENCY[stage],
      handle: (payload) =>
        toleratingOutage<Outcome>(outageLogs, stage, () => runJob(pipeline, readJob(payload)), later),
      afterDone: (payload) =>
        toleratingOutage(outageLogs, stage, () => resendIfDue(pipeline, jobs, readJob(payload)), undefined),
    },
    log,
  );
}

/** Sends the job again if it became due during its run: the stream refused that message while this one was pending. */
async function resendIfDue(pipeline: Pipeline, jobs: JobSender, done: Job): Promise<void> {
  if (await isDueAgain(pipeline, done)) jobs.send(done);
}
