import { createQueryOptions, useInfiniteQuery, useQuery, useTransport } from '@connectrpc/connect-query';
import { useQueries } from '@tanstack/react-query';
import { Link } from 'wouter';
import { type Submission, SubmissionStatus } from '../../../../gen/attestation/v1/attestations_pb.js';
import {
  type Export,
  type ExportDelivery,
  ExportDeliveryStatus,
  ExportDeliveryStatusSchema,
  ExportService,
  ExportStatus,
} from '../../../../gen/attestation/v1/exports_pb.js';
import {
  DeliveryStatus,
  DeliveryStatusSchema,
  EventTypeSchema,
  type Webhook,
  type WebhookDelivery,
  WebhookService,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { safe } from '../ui/safe.js';
import type { Tone } from '../ui/status.js';
import { useEveryRow } from '../use-every-row.js';
import { Step } from './step.js';

/** More than one submission has with one webhook: three changes of its batch. */
const EVERY = 200;
const POLL_MS = 5_000;
const TONES: Partial<Record<DeliveryStatus, Tone>> = {
  [DeliveryStatus.DELIVERED]: 'good',
  [DeliveryStatus.PENDING]: 'wait',
};

/** What followed once the batch had settled: events to webhooks, and copies by exports. */
export function Afterwards({ submission }: { submission: Submission }) {
  const webhooks = useQuery(WebhookService.method.listWebhooks, { limit: EVERY });
  return (
    <>
      {webhooks.data === undefined ? null : <Events submission={submission} webhooks={webhooks.data.data} />}
      <Shipments submission={submission} />
    </>
  );
}

function Events({ submission, webhooks }: { submission: Submission; webhooks: Webhook[] }) {
  const transport = useTransport();
  const lists = useQueries({
    queries: webhooks.map(({ id }) => ({
      ...createQueryOptions(
        WebhookService.method.listWebhookDeliveries,
        { id, submissionId: submission.id, limit: EVERY },
        { transport },
      ),
      refetchInterval: POLL_MS,
    })),
  });
  const deliveries = lists.flatMap(({ data }) => data?.data ?? []);
  return deliveries.map((delivery) => <EventStep key={delivery.id} delivery={delivery} />);
}

function EventStep({
  delivery: { status, event, webhookId, createdAt, deliveredAt },
}: {
  delivery: WebhookDelivery;
}) {
  return (
    <Step
      tone={TONES[status] ?? 'bad'}
      title={`Event ${event === undefined ? '' : enumName(EventTypeSchema, event.type)}`}
      at={deliveredAt ?? createdAt}
    >
      {enumName(DeliveryStatusSchema, status)}, to{' '}
      <Link href={`/webhooks/${webhookId}`}>
        <code>{webhookId}</code>
      </Link>
    </Step>
  );
}

function Shipments({ submission: { batchId = '', status } }: { submission: Submission }) {
  const { listExports } = ExportService.method;
  const shipped = useInfiniteQuery(
    listExports,
    { batchId, limit: EVERY, cursor: '' },
    {
      enabled: batchId !== '',
      pageParamKey: 'cursor',
      getNextPageParam: ({ nextCursor }) => nextCursor || undefined,
      refetchInterval: POLL_MS,
    },
  );
  const exports = useQuery(listExports, { limit: EVERY });
  const rows = useEveryRow(shipped);
  const isActive = (one: Export) => one.status !== ExportStatus.STOPPED;
  const awaited = status === SubmissionStatus.QUEUED ? (exports.data?.data.filter(isActive) ?? []) : [];
  return (
    <>
      {rows.flatMap((one) =>
        one.recentDeliveries.map((delivery) => (
          <ShipmentStep key={one.id} exportId={one.id} delivery={delivery} />
        )),
      )}
      {awaited
        .filter(({ id }) => !rows.some((one) => one.id === id))
        .map(({ id }) => (
          <Step key={id} tone="plain" title="Export">
            Comes once it has settled: <code>{id}</code>
          </Step>
        ))}
    </>
  );
}

function ShipmentStep({ exportId, delivery }: { exportId: string; delivery: ExportDelivery }) {
  const { object, revision, status, at, error } = delivery;
  const isDelivered = status === ExportDeliveryStatus.DELIVERED;
  return (
    <Step
      tone={(error && 'bad') || (isDelivered && 'good') || 'wait'}
      title={isDelivered ? 'Exported' : 'Export'}
      at={at}
    >
      {enumName(ExportDeliveryStatusSchema, status)}, revision {revision.toLocaleString()}, by{' '}
      <code>{exportId}</code> to <code>{safe(object)}</code>
      {error ? `. Last error: ${safe(error)}` : ''}
    </Step>
  );
}
