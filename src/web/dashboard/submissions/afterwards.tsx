import { createQueryOptions, useQuery, useTransport } from '@connectrpc/connect-query';
import { useQueries } from '@tanstack/react-query';
import { type Submission, SubmissionStatus } from '../../../../gen/attestation/v1/attestations_pb.js';
import { type Export, ExportService, ExportStatus } from '../../../../gen/attestation/v1/exports_pb.js';
import {
  DeliveryStatus,
  DeliveryStatusSchema,
  EventTypeSchema,
  type Webhook,
  type WebhookDelivery,
  WebhookService,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Tone } from '../ui/status.js';
import { Step } from './step.js';

/** Of each webhook the newest deliveries are looked through. */
const LOOKED_AT = 200;
const TONES: Partial<Record<DeliveryStatus, Tone>> = {
  [DeliveryStatus.DELIVERED]: 'good',
  [DeliveryStatus.PENDING]: 'wait',
};

/** What followed once the batch had settled: events to webhooks, and copies by exports. */
export function Afterwards({ submission }: { submission: Submission }) {
  const webhooks = useQuery(WebhookService.method.listWebhooks, { limit: 50 });
  const exports = useQuery(ExportService.method.listExports, { limit: 50 });
  return (
    <>
      {webhooks.data === undefined ? null : <Events submission={submission} webhooks={webhooks.data.data} />}
      {exports.data?.data
        .filter(({ status }) => status !== ExportStatus.STOPPED)
        .map((one) => (
          <Shipment key={one.id} submission={submission} one={one} />
        ))}
    </>
  );
}

function Events({ submission, webhooks }: { submission: Submission; webhooks: Webhook[] }) {
  const transport = useTransport();
  const lists = useQueries({
    queries: webhooks.map(({ id }) =>
      createQueryOptions(
        WebhookService.method.listWebhookDeliveries,
        { id, limit: LOOKED_AT },
        { transport },
      ),
    ),
  });
  const isOwn = ({ event }: WebhookDelivery) => event?.data?.submission_id === submission.id;
  const own = lists.flatMap(({ data }) => data?.data.filter(isOwn) ?? []);
  return own.map(({ id, status, event, webhookId, createdAt, deliveredAt }) => (
    <Step
      key={id}
      tone={TONES[status] ?? 'bad'}
      title={`Event ${event === undefined ? '' : enumName(EventTypeSchema, event.type)}`}
      at={deliveredAt ?? createdAt}
    >
      {enumName(DeliveryStatusSchema, status)}, to <code>{webhookId}</code>
    </Step>
  ));
}

function Shipment({ submission, one }: { submission: Submission; one: Export }) {
  const isShipped = one.shippedThrough > submission.logIndex;
  const isWaiting = submission.status === SubmissionStatus.QUEUED;
  return (
    <Step tone={isShipped ? 'good' : 'wait'} title={isShipped ? 'Exported' : 'Export'}>
      {isShipped
        ? 'The export has passed it: '
        : isWaiting
          ? 'Comes once it has settled: '
          : 'Not shipped yet: '}
      <code>{one.id}</code>
    </Step>
  );
}
