/**
 * The stages of a submission after its handler has checked and signed it. Every stage is idempotent: any number of
 * workers may run it, at any time and repeatedly.
 *
 * | stage | file | due when | commit point |
 * |---|---|---|---|
 * | sequence | attestations/sequence/sequence.ts | a handler has a checked and signed submission | the batched write |
 * | seal | log/seal.ts | the log has leaves after its newest batch | batch, tiles and checkpoint in one transaction |
 * | witness | witnessing/witness.ts | a witness has not vouched for the newest checkpoint | the evidence row |
 * | settle | log/settle.ts | evidence covers a batch, or its deadline has passed | the status and its transition row |
 * | notify | pipeline/notify.ts | a transition's events are not enqueued | a range per subscription, and the mark |
 * | webhook | webhooks/delivery/deliver.ts | a subscription has deliveries due | the record of an attempt |
 * | revise | exports/ship/mark-changes.ts | evidence or metadata in shipped objects has changed | the shipments' new revisions |
 * | ship | exports/ship/ship.ts | an export has objects to write | the record of an object |
 */
import type { Job } from '../../../gen/attestation/jobs/v1/jobs_pb.js';
import { markExportChanges } from '../exports/ship/mark-changes.js';
import { ship } from '../exports/ship/ship.js';
import { seal } from '../log/seal.js';
import { settle } from '../log/settle.js';
import type { Outcome } from '../queue/outcome.js';
import { deliver } from '../webhooks/delivery/deliver.js';
import { witness } from '../witnessing/witness.js';
import { notify } from './notify.js';
import type { Pipeline } from './pipeline.js';

/** Runs one job. */
export async function runJob(pipeline: Pipeline, job: Job): Promise<Outcome> {
  const { stage } = job;
  pipeline.assertCommits();
  switch (stage.case) {
    case 'seal':
      return seal(pipeline, stage.value.logId);
    case 'witness':
      return witness(pipeline, stage.value.logId, stage.value.witness);
    case 'settle':
      return settle(pipeline, stage.value.logId);
    case 'notify':
      return notify(pipeline, stage.value.batchId);
    case 'webhook':
      return deliver(pipeline, stage.value.webhookId);
    case 'revise':
      return markExportChanges(pipeline);
    case 'ship':
      return ship(pipeline, stage.value.exportId, stage.value.projectId);
    default:
      return { type: 'giveUp', reason: 'the job names no stage that this version knows' };
  }
}
