import { ExportCompression } from '../../../../gen/attestation/v1/exports_pb.js';
import type { LeasedExport } from '../store/export-leases.js';
import type { ShipmentWork } from '../store/export-work.js';
import { recordShipment } from '../store/shipments.js';
import type { Exports } from './export-stage.js';
import { objectName } from './object-name.js';
import { spool } from './spool.js';
import { writeObject } from './write-object.js';

/**
 * Writes the object of a batch: a line of JSON per matching submission, `{"submission": …, "bundle": …}`.
 *
 * @returns false if the lease has ended
 */
export async function writeShipment(
  exports: Exports,
  leased: LeasedExport,
  work: ShipmentWork,
  signal: AbortSignal,
): Promise<boolean> {
  const isGzip = leased.compression === ExportCompression.GZIP;
  let submissions = 0;
  let unstampedFrom: number | null = null;
  const render = () => {
    submissions = 0;
    unstampedFrom = null;
    return exports.renderLines(leased, work, ({ logIndex, isStampPending }) => {
      submissions++;
      if (isStampPending) unstampedFrom ??= logIndex;
    });
  };
  const made = {
    render,
    isLonger: (bytes: number) => exports.areLinesLonger(leased, work, bytes),
    name: objectName(leased, work),
    contentType: isGzip ? 'application/gzip' : 'application/jsonl',
    revision: work.revision,
  };
  const { temporaryDirectory: folder, spoolBudget: budget } = exports;
  const options = { folder, budget, projectId: leased.projectId, isGzip, signal };
  return spool(made, options, (object) =>
    writeObject(exports, leased, { object, work, signal }, (tx, writer, { bytes, sha256 }) =>
      recordShipment(tx, writer, work, { bytes, submissions, sha256, unstampedFrom }, exports.pacing),
    ),
  );
}
