/**
 * Consumes: an export's settled batches that are not shipped, shipments that have changed since, and due manifests.
 * Commit point: the transaction that records an object after the destination has confirmed it.
 * Emits: an event if the export has become failing; the tables hold the time of the next attempt.
 * A crash leaves: a lease that expires, and perhaps an object that is not recorded. The next attempt finds it there.
 */

import { isDatabaseUnavailable } from '../../database/database-errors.js';
import { storableText } from '../../database/storable-text.js';
import { webhookJob } from '../../jobs/job.js';
import { LEASE_MS } from '../../jobs/lease.js';
import { tryTakeSlot } from '../../jobs/project-slots.js';
import type { LogStages } from '../../log/log-stages.js';
import { DONE, type Outcome, retryAfter } from '../../queue/outcome.js';
import { insertExportEvent } from '../../webhooks/store/export-events.js';
import { DestinationError } from '../destinations/destination.js';
import {
  type LeasedExport,
  leaseExport,
  postponeExport,
  recordExportFailure,
} from '../store/export-leases.js';
import { claimExportWork, type ExportWork, releaseExport } from '../store/export-work.js';
import { recordShipmentError } from '../store/shipments.js';
import type { Exports } from './export-stage.js';
import { failingEvent } from './failing-event.js';
import { exportRetryDelayMs } from './retry-delay.js';
import { stampShipment } from './stamp-shipment.js';
import { writeManifest } from './write-manifest.js';
import { writeShipment } from './write-shipment.js';

/** The dependencies of the stage. */
type ShipStage = { exports: Exports; send: LogStages['send'] };

/** A job ends after this long, so that the exports of a project take turns. */
const SLICE_MS = 10_000;
const BUSY_MS = 1_000;
const FAILING_AFTER_MS = 24 * 3_600_000;
/** Delay after a failure of the service, not of the destination. */
const OWN_RETRY_MS = 30_000;
const MAX_ERROR_LENGTH = 500;
const INTERNAL_ERROR = 'the service could not make the object; it retries';

/** Ships the due objects of one export for a limited time, one after the other. */
export async function ship(pipeline: ShipStage, exportId: string, projectId: string): Promise<Outcome> {
  const { exports } = pipeline;
  if (exports.stopping.aborted) return DONE;
  const release = tryTakeSlot(exports.slots, projectId);
  if (release === undefined) return retryAfter(BUSY_MS);
  try {
    const leased = await leaseExport(exports.pool, exportId, LEASE_MS);
    return leased === undefined ? DONE : await shipLeased(pipeline, leased);
  } finally {
    release();
  }
}

async function shipLeased(pipeline: ShipStage, leased: LeasedExport): Promise<Outcome> {
  const { exports } = pipeline;
  const losing = new AbortController();
  exports.active.set(leased.id, { lease: leased.lease, losing, superseded: new Set() });
  const signal = AbortSignal.any([exports.aborting, losing.signal]);
  let isMore: boolean;
  try {
    isMore = await shipDue(pipeline, leased, signal);
    await exports.pool.begin((tx) => releaseExport(tx, leased, leased.lease));
  } finally {
    exports.active.delete(leased.id);
  }
  return isMore && !exports.stopping.aborted ? retryAfter(1) : DONE;
}

/** Returns whether there is more to ship at once. After a failure there is not. */
async function shipDue(pipeline: ShipStage, leased: LeasedExport, signal: AbortSignal): Promise<boolean> {
  const { exports } = pipeline;
  const endMs = exports.monotonicMs() + SLICE_MS;
  for (let turn = leased.lease; exports.monotonicMs() < endMs; turn++) {
    if (exports.stopping.aborted) return false;
    const claim = { lease: leased.lease, turn };
    const work = await exports.pool.begin((tx) => claimExportWork(tx, leased, claim));
    if (work === undefined) return false;
    try {
      if (!(await write(exports, leased, work, signal))) return false;
      if (work.kind !== 'stamps') noteRecovery(exports, leased);
    } catch (error) {
      if (signal.aborted) return false;
      if (isDatabaseUnavailable(error)) throw error;
      await recordFailure(pipeline, leased, work, error);
      return false;
    }
  }
  return true;
}

function write(
  exports: Exports,
  leased: LeasedExport,
  work: ExportWork,
  signal: AbortSignal,
): Promise<boolean> {
  switch (work.kind) {
    case 'shipment':
      return writeShipment(exports, leased, work, signal);
    case 'manifest':
      return writeManifest(exports, leased, work, signal);
    case 'stamps':
      return stampShipment(exports, leased, work);
  }
}

async function recordFailure(
  { exports, send }: ShipStage,
  leased: LeasedExport,
  work: ExportWork,
  error: unknown,
): Promise<void> {
  if (!(error instanceof DestinationError)) return postpone(exports, leased, work, error);
  const reason = storableText(error.message.slice(0, MAX_ERROR_LENGTH));
  const retryAfterMs = exportRetryDelayMs(leased.failures, exports.random(), error.retryAfterMs);
  exports.observe({ outcome: 'failed', bytes: 0 });
  const webhookIds = await exports.pool.begin(async (tx) => {
    const { id, lease } = leased;
    const failure = { id, lease, error: reason, retryAfterMs, failingAfterMs: FAILING_AFTER_MS };
    const failing = await recordExportFailure(tx, failure);
    if (failing === undefined) return [];
    await recordShipmentError(tx, id, work, reason);
    logFailure(exports, leased, { reason, retryAfterMs, hasBecomeFailing: failing.hasBecomeFailing });
    if (!failing.hasBecomeFailing) return [];
    return insertExportEvent(tx, failing, failingEvent(id, failing.since, reason), exports.newDeliveryId);
  });
  for (const id of webhookIds) send(webhookJob(id));
}

/** Postpones after a failure of the service, such as a full disk: it does not count as one of the destination. */
async function postpone(
  exports: Exports,
  { id, lease }: LeasedExport,
  work: ExportWork,
  error: unknown,
): Promise<void> {
  const { message: reason } = error as Error;
  exports.outageLog.failed({ export: id, reason }, 'an object of an export was not made; retrying');
  exports.observe({ outcome: 'failed', bytes: 0 });
  await exports.pool.begin(async (tx) => {
    if (await postponeExport(tx, { id, lease, error: INTERNAL_ERROR, retryAfterMs: OWN_RETRY_MS }))
      await recordShipmentError(tx, id, work, INTERNAL_ERROR);
  });
}

type Failure = { reason: string; retryAfterMs: number; hasBecomeFailing: boolean };

/** Logs the first failure of a row, and that the export has become failing: destinations fail for days. */
function logFailure({ log }: Exports, leased: LeasedExport, failure: Failure): void {
  if (leased.failures > 0 && !failure.hasBecomeFailing) return;
  const { id, projectId, failures } = leased;
  const message = failure.hasBecomeFailing
    ? 'every attempt of a day to write to the destination of an export has failed'
    : 'the destination of an export failed; retrying';
  log.warn({ export: id, project: projectId, failures: failures + 1, ...failure }, message);
}

function noteRecovery({ log }: Exports, leased: LeasedExport): void {
  if (leased.failures === 0) return;
  const { id, projectId, failures } = leased;
  log.info({ export: id, project: projectId, failures }, 'the destination of an export works again');
  leased.failures = 0;
}
