import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { Link } from 'wouter';
import { EventTypeSchema, type Webhook, WebhookService } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Button } from '../ui/button.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { PageHead } from '../ui/page-head.js';
import { PageList } from '../ui/page-list.js';
import { safe } from '../ui/safe.js';
import { Empty } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { CreateWebhook } from './create-webhook.js';
import { WebhookSecret } from './webhook-secret.js';
import { WebhookState } from './webhook-state.js';

const COLUMNS: Column<Webhook>[] = [
  { header: 'Address', cell: (row) => <Address webhook={row} /> },
  { header: 'Status', cell: (row) => <WebhookState webhook={row} /> },
  { header: 'Events', cell: (row) => <Events webhook={row} /> },
  { header: 'Created', cell: (row) => <Time at={row.createdAt} /> },
];

/** The webhook subscriptions of the project. */
export function WebhooksPage() {
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<Webhook>();
  const pages = useInfiniteQuery(
    WebhookService.method.listWebhooks,
    { limit: 50, cursor: '' },
    {
      refetchOnMount: 'always',
      pageParamKey: 'cursor',
      getNextPageParam: ({ nextCursor }) => nextCursor || undefined,
    },
  );
  return (
    <>
      <PageHead title="Webhooks" hint="Addresses of yours that receive an event when a submission settles.">
        <Button isPrimary calls={WebhookService.method.createWebhook} onClick={() => setCreating(true)}>
          Add webhook
        </Button>
      </PageHead>
      <PageList
        what="webhooks"
        pages={pages}
        empty={<Empty title="No webhooks">Add an https address that receives events.</Empty>}
      >
        {(webhooks) => <DataTable label="Webhooks" columns={COLUMNS} data={webhooks} idOf={({ id }) => id} />}
      </PageList>
      {isCreating ? <CreateWebhook onClose={() => setCreating(false)} onMade={setMade} /> : null}
      {made === undefined ? null : <WebhookSecret webhook={made} onClose={() => setMade(undefined)} />}
    </>
  );
}

function Address({ webhook: { id, url } }: { webhook: Webhook }) {
  return (
    <div>
      <Link href={`/webhooks/${id}`}>{safe(url)}</Link>
      <code class="sub">{id}</code>
    </div>
  );
}

function Events({ webhook: { events } }: { webhook: Webhook }) {
  return <span>{events.map((type) => enumName(EventTypeSchema, type)).join(', ')}</span>;
}
