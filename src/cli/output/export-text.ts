import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import {
  DestinationKindSchema,
  type Export,
  ExportCompression,
  type ExportDelivery,
  ExportDeliveryStatusSchema,
  type ExportDestination,
  ExportStart,
  ExportStatus,
  ExportStatusSchema,
} from '../../../gen/attestation/v1/exports_pb.js';
import { count } from '../../proof/export/object-check.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../../protocol/printable.js';
import { formatTable } from './table.js';

/** Exports as a table, one per line. */
export function exportTable(exports: readonly Export[]): string {
  return formatTable([
    ['ID', 'STATUS', 'LAG', 'DESTINATION'],
    ...exports.map((one) => [one.id, statusOf(one), lagOf(one), placeOf(one.destination)]),
  ]);
}

/** One export, with its recent deliveries if the response has them. */
export function exportText(one: Export): string {
  const { failingSince, lastError, nextAttemptAt, stoppedAt, recentDeliveries } = one;
  const lines = [
    `${one.id}  ${statusOf(one)}  ${placeOf(one.destination)}`,
    contentOf(one),
    `shipped through tree size ${one.shippedThrough}; ${one.lagBatches === 0 ? '' : 'behind by '}${lagOf(one)}`,
  ];
  if (failingSince !== undefined) lines.push(`every attempt has failed since ${timeOf(failingSince)}`);
  if (lastError !== undefined) lines.push(`last error: ${printable(lastError)}`);
  if (nextAttemptAt !== undefined) lines.push(`next attempt: ${timeOf(nextAttemptAt)}`);
  if (stoppedAt !== undefined) lines.push(`stopped: ${timeOf(stoppedAt)}`);
  if (recentDeliveries.length > 0) lines.push(deliveryTable(recentDeliveries));
  return lines.join('\n');
}

/** Describes the content of an export: `submissions with schema purl, gzip, from the beginning`. */
function contentOf({ filter, start, compression }: Export): string {
  const what =
    filter === undefined ? 'all submissions' : `submissions with schema ${printable(filter.schema)}`;
  const how = compression === ExportCompression.GZIP ? ', gzip' : '';
  return `${what}${how}, ${start === ExportStart.BEGINNING ? 'from the beginning' : 'from its creation on'}`;
}

function lagOf({ lagBatches, lagSeconds, status }: Export): string {
  if (status === ExportStatus.STOPPED) return 'stopped';
  if (lagBatches === 0) return 'up to date';
  return `${count(lagBatches, 'batch', 'batches')}, ${lagSeconds} s`;
}

function deliveryTable(deliveries: readonly ExportDelivery[]): string {
  return formatTable([
    ['AT', 'STATUS', 'ATTEMPTS', 'SUBMISSIONS', 'BYTES', 'OBJECT'],
    ...deliveries.map(({ at, status, attempts, submissions, bytes, object, error }) => [
      timeOf(at),
      enumName(ExportDeliveryStatusSchema, status),
      String(attempts),
      String(submissions),
      String(bytes),
      printable(error === undefined ? object : `${object} (${error})`),
    ]),
  ]);
}

function placeOf(destination: ExportDestination | undefined): string {
  if (destination === undefined) return '';
  const { kind, bucket, container, accountUrl, url, prefix } = destination;
  const place = url || (accountUrl ? `${accountUrl}/${container}` : bucket);
  return printable(`${enumName(DestinationKindSchema, kind)} ${place}${prefix ? `/${prefix}` : ''}`);
}

function statusOf({ status }: Export): string {
  return enumName(ExportStatusSchema, status);
}

function timeOf(at: Timestamp | undefined): string {
  return at === undefined ? '' : timestampDate(at).toISOString();
}
