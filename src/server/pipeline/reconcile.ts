/**
 * Consumes: the tables.
 * Commit point: none; each stage has its own.
 * Emits: every job that is due. So the loss of a message, or of all of JetStream, costs only time.
 * A crash leaves: nothing to clean up.
 */

import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import type { OutageLogs } from '../core/outage-log.js';
import { hasExportChanges } from '../exports/store/export-changes.js';
import { findDueExports, isExportDue } from '../exports/store/export-leases.js';
import {
  jobSubject,
  notifyJob,
  reviseJob,
  sealJob,
  settleJob,
  shipJob,
  webhookJob,
  witnessJob,
} from '../jobs/job.js';
import { toleratingOutage } from '../jobs/tolerate-outage.js';
import { DONE } from '../queue/outcome.js';
import { inTrace } from '../telemetry/spans.js';
import { findDueWebhooks, isWebhookDue } from '../webhooks/store/webhook-leases.js';
import { findUnnotifiedBatches } from '../webhooks/store/webhook-ranges.js';
import { findDueWork } from './due-jobs.js';
import type { Pipeline } from './pipeline.js';
import { runJob } from './stages.js';

/** Maximum batches and subscriptions per query, longest due first. */
const MAX_FOUND = 500;

/** All due jobs, read from the tables, in the order of the stages. */
export async function findDueJobs(pipeline: Pipeline): Promise<Job[]> {
  return (await Promise.all([findDueLogJobs(pipeline), findDueEventJobs(pipeline)])).flat();
}

/** The due jobs of events, deliveries and exports. */
export async function findDueEventJobs({ pool }: Pick<Pipeline, 'pool'>): Promise<Job[]> {
  const [batches, webhooks, hasChanges, exports] = await Promise.all([
    findUnnotifiedBatches(pool, MAX_FOUND),
    findDueWebhooks(pool, MAX_FOUND),
    hasExportChanges(pool),
    findDueExports(pool, MAX_FOUND),
  ]);
  return [
    ...batches.map(notifyJob),
    ...webhooks.map(webhookJob),
    ...(hasChanges ? [reviseJob()] : []),
    ...exports.map(shipJob),
  ];
}

/** The due jobs of sealing, witnesses and settling. */
export async function findDueLogJobs(pipeline: Pick<Pipeline, 'pool' | 'witnesses'>): Promise<Job[]> {
  const jobs: Job[] = [];
  const here = new Set(pipeline.witnesses.map(({ witness }) => witness.name));
  for (const { logId, seal, settle, witnesses } of await findDueWork(pipeline.pool)) {
    if (seal) jobs.push(sealJob(logId));
    for (const name of witnesses.filter((witness) => here.has(witness))) jobs.push(witnessJob(logId, name));
    if (settle) jobs.push(settleJob(logId));
  }
  return jobs;
}

/** Whether a finished job is due again. Settling and events are left to the reconciler, which is soon enough. */
export async function isDueAgain(pipeline: Pick<Pipeline, 'pool' | 'witnesses'>, job: Job): Promise<boolean> {
  const { pool } = pipeline;
  const { stage } = job;
  switch (stage.case) {
    case 'seal':
    case 'witness':
      return (await findDueLogJobs(pipeline)).some((due) => jobSubject(due) === jobSubject(job));
    case 'webhook':
      return isWebhookDue(pool, stage.value.webhookId);
    case 'revise':
      return hasExportChanges(pool);
    case 'ship':
      return isExportDue(pool, stage.value.exportId);
    default:
      return false;
  }
}

/** Runs jobs in this process while JetStream is unavailable. */
export type LocalRunner = {
  /** Starts a job concurrently with others, unless an equal job is running. */
  run(job: Job): void;
  /** Resolves once no job is running. */
  idle(): Promise<void>;
};

/** Creates a runner over the stages. It logs failures; the reconciler finds those jobs again. */
export function createLocalRunner(pipeline: Pipeline, outageLogs: OutageLogs): LocalRunner {
  const running = new Map<string, Promise<void>>();
  return {
    run(job) {
      const subject = jobSubject(job);
      if (running.has(subject)) return;
      const name = job.stage.case ?? '';
      const runHere = () => inTrace(name, {}, () => runJob(pipeline, job));
      const work = toleratingOutage(outageLogs, name, runHere, DONE)
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
