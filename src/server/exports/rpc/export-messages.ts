import { create, fromJson } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type Export,
  type ExportDelivery,
  ExportDeliverySchema,
  ExportDeliveryStatus,
  ExportDestinationSchema,
  ExportSchema,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { manifestName, objectName } from '../ship/object-name.js';
import type { ExportProgress } from '../store/export-status.js';
import type { ExportRow } from '../store/exports.js';
import type { DeliveredObject } from '../store/shipments.js';

/** Converts an export to the message of the API, without secrets. */
export function exportMessage(
  row: ExportRow,
  progress: ExportProgress | undefined,
  deliveries: readonly DeliveredObject[] = [],
): Export {
  return create(ExportSchema, {
    id: row.id,
    destination: fromJson(ExportDestinationSchema, row.destination),
    ...(row.schema === null ? {} : { filter: { schema: row.schema } }),
    environment: row.environment,
    start: row.start,
    compression: row.compression,
    status: row.status,
    shippedThrough: BigInt(progress?.shippedThrough ?? 0),
    lagBatches: progress?.lagBatches ?? 0,
    lagSeconds: BigInt(Math.max(0, Math.floor(progress?.lagSeconds ?? 0))),
    consecutiveFailures: row.failures,
    ...(row.failingSince === null ? {} : { failingSince: timestampFromDate(row.failingSince) }),
    ...(row.lastError === null ? {} : { lastError: row.lastError }),
    ...(row.failures === 0 || row.dueAt === null ? {} : { nextAttemptAt: timestampFromDate(row.dueAt) }),
    createdAt: timestampFromDate(row.createdAt),
    ...(row.stoppedAt === null ? {} : { stoppedAt: timestampFromDate(row.stoppedAt) }),
    recentDeliveries: deliveries.map((delivery) => deliveryMessage(row, delivery)),
  });
}

function deliveryMessage(row: ExportRow, delivery: DeliveredObject): ExportDelivery {
  const { batchId, day } = delivery;
  return create(ExportDeliverySchema, {
    batchId: batchId ?? '',
    object: batchId === null ? manifestName(row, day) : objectName(row, { day, batchId }),
    revision: BigInt(delivery.revision),
    bytes: BigInt(delivery.bytes),
    submissions: delivery.submissions,
    attempts: delivery.attempts,
    status: delivery.isCurrent ? ExportDeliveryStatus.DELIVERED : ExportDeliveryStatus.PENDING,
    at: timestampFromDate(delivery.at),
    ...(delivery.error === null ? {} : { error: delivery.error }),
  });
}
