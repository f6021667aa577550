import { create } from '@bufbuild/protobuf';
import { type Job, JobSchema } from '../../../gen/attestation/jobs/v1/jobs_pb.js';

/** A stage with jobs; each has its own subject and consumer. */
export type Stage = NonNullable<Job['stage']['case']>;

/** The job to seal a log. */
export function sealJob(logId: number): Job {
  return create(JobSchema, { stage: { case: 'seal', value: { logId } } });
}

/** The job to ask a witness about a log. */
export function witnessJob(logId: number, witness: string): Job {
  return create(JobSchema, { stage: { case: 'witness', value: { logId, witness } } });
}

/** The job to settle a log's batches. */
export function settleJob(logId: number): Job {
  return create(JobSchema, { stage: { case: 'settle', value: { logId } } });
}

/** The job to enqueue the events of a batch's transitions. */
export function notifyJob(batchId: string): Job {
  return create(JobSchema, { stage: { case: 'notify', value: { batchId } } });
}

/** The job to send a subscription's due deliveries. */
export function webhookJob(webhookId: string): Job {
  return create(JobSchema, { stage: { case: 'webhook', value: { webhookId } } });
}

/** The job to mark the shipments that changes of evidence or metadata concern. */
export function reviseJob(): Job {
  return create(JobSchema, { stage: { case: 'revise', value: {} } });
}

/** The job that ships the due objects of an export. */
export function shipJob({ id: exportId, projectId }: { id: string; projectId: string }): Job {
  return create(JobSchema, { stage: { case: 'ship', value: { exportId, projectId } } });
}

/** The prefix of the service's stream and its subjects. */
export const QUEUE_PREFIX = 'jobs';

/** The subject of a job below the stream's prefix: stage and key, so that equal jobs are queued once. */
export function jobSubject(job: Job): string {
  const { stage } = job;
  switch (stage.case) {
    case 'witness':
      return `witness.${stage.value.witness}.${stage.value.logId}`;
    case 'seal':
    case 'settle':
      return `${stage.case}.${stage.value.logId}`;
    case 'notify':
      return `notify.${stage.value.batchId}`;
    case 'webhook':
      return `webhook.${stage.value.webhookId}`;
    case 'revise':
      return 'revise.all';
    case 'ship':
      return `ship.${stage.value.exportId}`;
    default:
      throw new Error('a job without a stage');
  }
}
