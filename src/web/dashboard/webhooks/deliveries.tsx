import { useState } from 'preact/hooks';
import {
  DeliveryStatus,
  DeliveryStatusSchema,
  EventTypeSchema,
  type WebhookDelivery,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Button } from '../ui/button.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { Status, type Tone } from '../ui/status.js';
import { Time } from '../ui/time.js';
import { DeliveryDialog } from './delivery-dialog.js';

const TONES: Partial<Record<DeliveryStatus, Tone>> = {
  [DeliveryStatus.DELIVERED]: 'good',
  [DeliveryStatus.PENDING]: 'wait',
};

type Props = { deliveries: WebhookDelivery[] };

/** Deliveries, newest first; one opens with its attempts. */
export function Deliveries({ deliveries }: Props) {
  const [shown, setShown] = useState<WebhookDelivery>();
  const [columns] = useState(() => columnsWith(setShown));
  return (
    <>
      <DataTable label="Deliveries" columns={columns} data={deliveries} idOf={({ id }) => id} />
      {shown === undefined ? null : <DeliveryDialog delivery={shown} onClose={() => setShown(undefined)} />}
    </>
  );
}

function columnsWith(open: (delivery: WebhookDelivery) => void): Column<WebhookDelivery>[] {
  return [
    { header: 'Event', cell: (row) => <EventName delivery={row} /> },
    { header: 'Status', cell: (row) => <State delivery={row} /> },
    { header: 'Last attempt', cell: (row) => lastAttempt(row) },
    { header: 'Created', cell: (row) => <Time at={row.createdAt} /> },
    { header: 'Next attempt', cell: (row) => <Time at={row.nextAttemptAt} /> },
    { header: 'Attempts', cell: (row) => <Open delivery={row} onOpen={open} /> },
  ];
}

function EventName({ delivery: { id, event } }: { delivery: WebhookDelivery }) {
  return (
    <div>
      <strong>{event === undefined ? '' : enumName(EventTypeSchema, event.type)}</strong>
      <code class="sub">{id}</code>
    </div>
  );
}

function State({ delivery: { status } }: { delivery: WebhookDelivery }) {
  return <Status tone={TONES[status] ?? 'bad'}>{enumName(DeliveryStatusSchema, status)}</Status>;
}

function lastAttempt({ attempts }: WebhookDelivery): string {
  const last = attempts.at(-1);
  if (last === undefined) return '–';
  return `${last.statusCode ?? 'no answer'}, ${last.durationMs} ms`;
}

function Open({
  delivery,
  onOpen,
}: {
  delivery: WebhookDelivery;
  onOpen: (delivery: WebhookDelivery) => void;
}) {
  return (
    <Button isQuiet onClick={() => onOpen(delivery)} aria-label={`Show attempts of ${delivery.id}`}>
      Show
    </Button>
  );
}
