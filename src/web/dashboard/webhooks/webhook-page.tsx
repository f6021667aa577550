import { useInfiniteQuery, useQuery } from '@connectrpc/connect-query';
import { useIsMutating } from '@tanstack/react-query';
import { useState } from 'preact/hooks';
import {
  type DeliveryStatus,
  DeliveryStatusSchema,
  type Webhook,
  WebhookService,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Choice } from '../ui/choice.js';
import { PageHead } from '../ui/page-head.js';
import { PageList } from '../ui/page-list.js';
import { safe } from '../ui/safe.js';
import { Empty, ErrorState, Loading } from '../ui/states.js';
import { Deliveries } from './deliveries.js';
import { WebhookActions } from './webhook-actions.js';
import { WebhookState } from './webhook-state.js';

const POLL_MS = 3_000;

/** How often to read anew: not during a change, since a deleted webhook is not found. */
function usePoll(): number | false {
  return useIsMutating() > 0 ? false : POLL_MS;
}

const STATUSES = DeliveryStatusSchema.values.map(
  ({ number }) =>
    [String(number), number === 0 ? 'All deliveries' : enumName(DeliveryStatusSchema, number)] as const,
);

/** One subscription, with its deliveries. */
export function WebhookPage({ id }: { id: string }) {
  const refetchInterval = usePoll();
  const webhook = useQuery(WebhookService.method.getWebhook, { id }, { refetchInterval });
  if (webhook.isPending) return <Loading what="the webhook" />;
  if (webhook.data === undefined) {
    return (
      <>
        <PageHead title="Webhook" hint={id} />
        <ErrorState error={webhook.error} onRetry={webhook.refetch} />
      </>
    );
  }
  return <Shown webhook={webhook.data} />;
}

function Shown({ webhook }: { webhook: Webhook }) {
  const [status, setStatus] = useState('0');
  return (
    <>
      <PageHead title="Webhook" hint={safe(webhook.url)}>
        <WebhookState webhook={webhook} />
      </PageHead>
      <WebhookActions webhook={webhook} />
      <div class="head">
        <h2>Deliveries</h2>
        <Choice
          label="Status of deliveries"
          isLabelHidden
          options={STATUSES}
          value={status}
          onChange={setStatus}
        />
      </div>
      <DeliveryList id={webhook.id} status={Number(status)} />
    </>
  );
}

function DeliveryList({ id, status }: { id: string; status: DeliveryStatus }) {
  const refetchInterval = usePoll();
  const pages = useInfiniteQuery(
    WebhookService.method.listWebhookDeliveries,
    { id, status, limit: 50, cursor: '' },
    {
      pageParamKey: 'cursor',
      getNextPageParam: ({ nextCursor }) => nextCursor || undefined,
      refetchInterval,
    },
  );
  return (
    <PageList
      what="deliveries"
      pages={pages}
      empty={<Empty title="No deliveries">Send a test event to see one.</Empty>}
    >
      {(deliveries) => <Deliveries deliveries={deliveries} />}
    </PageList>
  );
}
