import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import {
  DestinationKindSchema,
  type Export,
  type ExportDelivery,
  ExportDeliveryStatusSchema,
  type ExportDestination,
  ExportStatusSchema,
} from '../../../gen/attestation/v1/exports_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../cli.js';
import { formatTable } from './table.js';

/** Exports as a table, one per line. */
export function exportTable(exports: readonly Export[]): string {
  return formatTable([
    ['ID', 'STATUS', 'LAG', 'DESTINATION'],
    ...exports.map((one) => [one.id, statusOf(one), `${one.lagBatches} batches`, placeOf(one.destination)]),
  ]);
}

/** One export, with its recent deliveries if the response has them. */
export function exportText(one: Export): string {
  const { failingSince, lastError, nextAttemptAt, stoppedAt, recentDeliveries } = one;
  const lines = [
    `${one.id}  ${statusOf(one)}  ${placeOf(one.destination)}`,
    `shipped through tree size ${one.shippedThrough}; ${one.lagBatches} batches to ship, the oldest ${one.lagSeconds} s old`,
  ];
  if (failingSince !== undefined) lines.push(`every attempt has failed since ${timeOf(failingSince)}`);
  if (lastError !== undefined) lines.push(`last error: ${printable(lastError)}`);
  if (nextAttemptAt !== undefined) lines.push(`next attempt: ${timeOf(nextAttemptAt)}`);
  if (stoppedAt !== undefined) lines.push(`stopped: ${timeOf(stoppedAt)}`);
  if (recentDeliveries.length > 0) lines.push(deliveryTable(recentDeliveries));
  return lines.join('\n');
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
