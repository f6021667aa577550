import type { Sql } from '../../database/connect.js';
import { retryWhileUnavailable } from '../../database/database-errors.js';
import { inSpan } from '../../telemetry/spans.js';
import {
  DestinationError,
  type OpenDestination,
  type StreamedObject,
  type WriteControl,
  type WriteOutcome,
} from '../destinations/destination.js';
import type { ExportObject } from '../destinations/object-store.js';
import { holdsLease, type LeasedExport } from '../store/export-leases.js';
import type { ManifestWork, ShipmentWork } from '../store/export-work.js';
import { recordSuperseded } from '../store/shipments.js';
import type { Exports } from './export-stage.js';

/** An object to write for a piece of work. */
type Write = {
  object: ExportObject | StreamedObject;
  work: ManifestWork | ShipmentWork;
  signal: AbortSignal;
};

const CONTENDED =
  'another writer keeps replacing the object: nothing else may write below the folder of this export';

type Writer = { exportId: string; lease: number };

/**
 * Writes an object, only over an older revision of itself, and records it. If the destination has this revision or a later
 * one with other content, the work is done again with a later revision.
 *
 * @param record is called with the object's bytes and SHA-256; returns false if the lease has ended
 * @returns false if the lease has ended
 * @throws DestinationError if the object was replaced by others before, in the same job
 */
export async function writeObject(
  exports: Exports,
  leased: LeasedExport,
  { object, work, signal }: Write,
  record: (tx: Sql, writer: Writer, made: Pick<ExportObject, 'bytes' | 'sha256'>) => Promise<boolean>,
): Promise<boolean> {
  const { id, lease } = leased;
  const writer = { exportId: id, lease };
  const isCurrent = () => holdsLease(exports.pool, id, lease);
  const attributes = { 'attest.export.id': id, 'attest.project.id': leased.projectId };
  const written = await inSpan('write object', { kind: 'client', attributes }, () =>
    exports.destinations.use(leased, (destination) => writeTo(destination, object, { signal, isCurrent })),
  );
  if (written.outcome === 'written') {
    const made = 'summary' in object ? object.summary() : object;
    const isRecorded = await retryWhileUnavailable(() =>
      exports.pool.begin((tx) => record(tx, writer, made)),
    );
    if (isRecorded) exports.observe({ outcome: 'shipped', bytes: made.bytes });
    return isRecorded;
  }
  const { revision } = written;
  if (revision === undefined) return false;
  if (exports.active.get(id)?.superseded.has(object.name)) throw new DestinationError(CONTENDED);
  exports.active.get(id)?.superseded.add(object.name);
  return exports.pool.begin((tx) => recordSuperseded(tx, writer, work, revision));
}

async function writeTo(
  destination: OpenDestination,
  object: ExportObject | StreamedObject,
  control: WriteControl,
): Promise<WriteOutcome> {
  if (!('summary' in object)) return destination.write(object, control);
  if (destination.writeStreamed !== undefined) return destination.writeStreamed(object, control);
  return destination.write(await object.whole(), control);
}
