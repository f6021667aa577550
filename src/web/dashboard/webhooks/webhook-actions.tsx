import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { useMutation } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { useLocation } from 'wouter';
import { type Webhook, WebhookService, WebhookStatus } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { Button } from '../ui/button.js';
import { Confirm } from '../ui/confirm.js';
import { count } from '../ui/count.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';
import { WebhookSecret } from './webhook-secret.js';

const DAYS_7_MS = 7 * 86_400_000;
const { testWebhook, updateWebhook, rotateWebhookSecret, redeliverFailedWebhookDeliveries, deleteWebhook } =
  WebhookService.method;

/** What can be done with a subscription. */
export function WebhookActions({ webhook }: { webhook: Webhook }) {
  const { id, status } = webhook;
  const [open, setOpen] = useState<'rotate' | 'delete'>();
  const [rotated, setRotated] = useState<Webhook>();
  const test = useChange(testWebhook);
  const update = useChange(updateWebhook);
  const again = useChange(redeliverFailedWebhookDeliveries);
  const rotate = useChange(rotateWebhookSecret);
  const isActive = status === WebhookStatus.ACTIVE;
  const toggled = isActive ? WebhookStatus.DISABLED : WebhookStatus.ACTIVE;
  const close = () => setOpen(undefined);
  const error = test.error ?? update.error ?? again.error;
  return (
    <>
      <div class="row">
        <Button isPrimary calls={testWebhook} disabled={test.isPending} onClick={() => test.mutate({ id })}>
          Send a test event
        </Button>
        <Button
          calls={redeliverFailedWebhookDeliveries}
          onClick={() => again.mutate({ id, since: timestampFromMs(Date.now() - DAYS_7_MS) })}
        >
          Redeliver what failed in 7 days
        </Button>
        <Button calls={updateWebhook} onClick={() => update.mutate({ id, status: toggled })}>
          {isActive ? 'Disable' : 'Enable'}
        </Button>
        <Button calls={rotateWebhookSecret} onClick={() => setOpen('rotate')}>
          New secret
        </Button>
        <Button isDanger calls={deleteWebhook} onClick={() => setOpen('delete')}>
          Delete
        </Button>
      </div>
      <p role="status">
        {again.data === undefined
          ? ''
          : `${count(again.data.redelivering ?? 0, 'delivery', 'deliveries')} to send again.`}
        {test.data === undefined ? '' : ' The test event is the newest delivery below.'}
      </p>
      {error === null ? null : <ErrorState error={error} />}
      {open === 'rotate' ? (
        <Confirm
          title="Make a new secret?"
          action="Make it"
          change={rotate}
          onClose={close}
          onConfirm={() =>
            void rotate.mutateAsync({ id }).then(
              (made) => [close(), setRotated(made)],
              () => {},
            )
          }
        >
          <p>Deliveries are signed with both secrets for a day.</p>
        </Confirm>
      ) : null}
      {open === 'delete' ? <Delete id={id} onClose={close} /> : null}
      {rotated === undefined ? null : (
        <WebhookSecret webhook={rotated} onClose={() => setRotated(undefined)} />
      )}
    </>
  );
}

function Delete({ id, onClose }: { id: string; onClose: () => void }) {
  const [, navigate] = useLocation();
  // The page reads what it shows no more, so that nothing asks for what is gone.
  const remove = useMutation(deleteWebhook, { onSuccess: () => navigate('/webhooks') });
  return (
    <Confirm
      title="Delete the webhook?"
      action="Delete it"
      change={remove}
      onClose={onClose}
      onConfirm={() => remove.mutate({ id })}
    >
      <p>Nothing more is delivered to it. This cannot be undone.</p>
    </Confirm>
  );
}
