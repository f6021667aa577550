import { toHex } from '../../../proof/bytes/encoding.js';
import type { ManifestFields } from '../../../proof/export/manifest-fields.js';
import { environmentName } from '../../../protocol/environment.js';
import type { LeasedExport } from '../store/export-leases.js';
import {
  isDayComplete,
  listManifestObjects,
  listManifestRanges,
  type ManifestObject,
  type ManifestRange,
  recordManifest,
} from '../store/export-manifests.js';
import type { ManifestWork } from '../store/export-work.js';
import type { Exports } from './export-stage.js';
import { batchFileName, manifestName } from './object-name.js';
import { spoolBytes } from './spool.js';
import { writeObject } from './write-object.js';

/** An incomplete manifest of a day that is over is written again after this long. */
const RETRY_MS = 10 * 60_000;

/** Writes the signed manifest of a day's objects. @returns false if the lease has ended */
export async function writeManifest(
  exports: Exports,
  leased: LeasedExport,
  work: ManifestWork,
  signal: AbortSignal,
): Promise<boolean> {
  const { pool } = exports;
  const { day, revision } = work;
  const isComplete = await isDayComplete(pool, leased.id, day);
  const ranges = await listManifestRanges(pool, leased.id, day);
  const objects = (await listManifestObjects(pool, leased.id, day)).filter((one) => isWithin(one, ranges));
  const fields = manifestFields(leased, work, { isComplete, ranges, objects });
  const spooled = spoolBytes(await exports.signManifest(leased.environment, fields));
  const object = {
    ...spooled,
    name: manifestName(leased, day),
    contentType: 'application/json',
    revision,
  };
  const submissions = objects.reduce((sum, one) => sum + one.submissions, 0);
  return writeObject(exports, leased, { object, work, signal }, (tx, writer) =>
    recordManifest(tx, writer, { day, revision, bytes: spooled.bytes, submissions, isComplete }, RETRY_MS),
  );
}

function isWithin(
  { logId, firstIndex, treeSize }: ManifestObject,
  ranges: readonly ManifestRange[],
): boolean {
  return ranges.some((range) => range.logId === logId && firstIndex >= range.from && treeSize <= range.to);
}

type ManifestParts = {
  isComplete: boolean;
  ranges: readonly ManifestRange[];
  objects: readonly ManifestObject[];
};

function manifestFields(
  leased: LeasedExport,
  { day, revision }: ManifestWork,
  { isComplete, ranges, objects }: ManifestParts,
): ManifestFields {
  return {
    exportId: leased.id,
    project: leased.projectId,
    environment: environmentName(leased.environment),
    day,
    filterSchema: leased.schema,
    revision,
    isComplete,
    logs: ranges.map(({ origin, start, from, to }) => ({ origin, start, from, to })),
    objects: objects.map((one) => ({
      name: batchFileName(leased, one.batchId),
      sha256: toHex(one.sha256),
      batchId: one.batchId,
      log: one.origin,
      firstIndex: one.firstIndex,
      treeSize: one.treeSize,
      submissions: one.submissions,
      bytes: one.bytes,
      revision: one.revision,
    })),
  };
}
