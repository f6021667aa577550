import {
  type ExportDelivery,
  ExportDeliveryStatus,
  ExportDeliveryStatusSchema,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { safe } from '../ui/safe.js';
import { Status } from '../ui/status.js';
import { Time } from '../ui/time.js';

const COLUMNS: Column<ExportDelivery>[] = [
  { header: 'Object', cell: (row) => <ObjectName delivery={row} /> },
  { header: 'Status', cell: (row) => <State delivery={row} /> },
  { header: 'Submissions', cell: (row) => row.submissions.toLocaleString() },
  { header: 'Bytes', cell: (row) => row.bytes.toLocaleString() },
  { header: 'Attempts', cell: (row) => row.attempts.toLocaleString() },
  { header: 'When', cell: (row) => <Time at={row.at} /> },
];

/** The newest objects that were written, or could not be. */
export function ExportHistory({ deliveries }: { deliveries: ExportDelivery[] }) {
  if (deliveries.length === 0) return <p class="hint">Nothing was written yet.</p>;
  return (
    <details open={deliveries.length <= 10}>
      <summary>The newest {deliveries.length} objects</summary>
      <DataTable label="Objects" columns={COLUMNS} data={deliveries} idOf={({ object }) => object} />
    </details>
  );
}

function ObjectName({ delivery: { object, revision } }: { delivery: ExportDelivery }) {
  return (
    <div>
      <code>{safe(object)}</code>
      <span class="sub">revision {revision.toLocaleString()}</span>
    </div>
  );
}

function State({ delivery: { status, error } }: { delivery: ExportDelivery }) {
  const isDelivered = status === ExportDeliveryStatus.DELIVERED;
  return (
    <div>
      <Status tone={(error && 'bad') || (isDelivered && 'good') || 'wait'}>
        {enumName(ExportDeliveryStatusSchema, status)}
      </Status>
      {error ? <span class="sub">{safe(error)}</span> : null}
    </div>
  );
}
