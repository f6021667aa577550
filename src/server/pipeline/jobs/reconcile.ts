/**
 * Consumes: the tables.
 * Commit point: none of its own; the stages have theirs.
 * Emits: every job that is due. So a lost message, or the loss of JetStream altogether, costs time and nothing else.
 * A crash leaves: nothing to clean up.
 */

import type { Job } from '../../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { OutageLogs } from '../../core/outage-log.js';
import { DONE } from '../../queue/outcome.js';
import { findDueWork } from '../../store/due-jobs.js';
import { findDueWebhooks } from '../../store/webhooks/webhook-leases.js';
import { findUnnotifiedBatches } from '../../store/webhooks/webhook-ranges.js';
import type { LogPipeline, Pipeline } from '../pipeline.js';
import { runJob } from '../stages.js';
import { toleratingOutage } from '../tolerate-outage.js';
import { jobSubject, notifyJob, sealJob, settleJob, webhookJob, witnessJob } from './job.js';

/** At most so many batches and subscriptions are found due at a time, the longest due first. */
const MAX_FOUND = 500;

/** The jobs that the tables say are due, in the order of the stages. */
export async function findDueJobs(pipeline: LogPipeline): Promise<Job[]> {
  return (await Promise.all([findDueLogJobs(pipeline), findDueEventJobs(pipeline)])).flat();
}

/** Those of events and their deliveries. */
export async function findDueEventJobs({ pool }: LogPipeline): Promise<Job[]> {
  const [batches, webhooks] = await Promise.all([
    findUnnotifiedBatches(pool, MAX_FOUND),
    findDueWebhooks(pool, MAX_FOUND),
  ]);
  return [...batches.map(notifyJob), ...webhooks.map(webhookJob)];
}

/** Those of sealing, witnesses and settling. */
export async function findDueLogJobs(pipeline: LogPipeline): Promise<Job[]> {
  const jobs: Job[] = [];
  const here = new Set(pipeline.witnesses.map(({ witness }) => witness.name));
  for (const { logId, seal, settle, witnesses } of await findDueWork(pipeline.pool)) {
    if (seal) jobs.push(sealJob(logId));
    for (const name of witnesses.filter((witness) => here.has(witness))) jobs.push(witnessJob(logId, name));
    if (settle) jobs.push(settleJob(logId));
  }
  return jobs;
}

/** Runs jobs in this process, for while JetStream cannot be reached. */
export type LocalRunner = {
  /** Starts a job beside those under way, unless its like is under way: a slow witness holds up nobody else. */
  run(job: Job): void;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
};

/** A runner over the stages; what fails is logged, and found again by the reconciler. */
export function createLocalRunner(pipeline: Pipeline, outageLogs: OutageLogs): LocalRunner {
  const running = new Map<string, Promise<void>>();
  return {
    run(job) {
      const subject = jobSubject(job);
      if (running.has(subject)) return;
      const work = toleratingOutage(outageLogs, job.stage.case ?? '', () => runJob(pipeline, job), DONE)
        .then(() => {})
        .catch((error: unknown) => pipeline.log.error({ err: error, job: subject }, 'a job failed'))
        .finally(() => running.delete(subject));
      running.set(subject, work);
    },
    async idle() {
      while (running.size > 0) await Promise.all(running.values());
    },
  };
}
