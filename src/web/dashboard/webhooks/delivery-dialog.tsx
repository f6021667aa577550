import { timestampDate } from '@bufbuild/protobuf/wkt';
import { useQuery } from '@connectrpc/connect-query';
import {
  EventTypeSchema,
  type WebhookAttempt,
  type WebhookDelivery,
  WebhookService,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Button } from '../ui/button.js';
import { Dialog } from '../ui/dialog.js';
import { safe, safeJson } from '../ui/safe.js';
import { ErrorState } from '../ui/states.js';
import { Status } from '../ui/status.js';
import { Time } from '../ui/time.js';
import { useChange } from '../use-change.js';

const POLL_MS = 2_000;

type Props = { delivery: WebhookDelivery; onClose: () => void };

/** One delivery: what is sent, and every attempt with its answer. */
export function DeliveryDialog({ delivery: listed, onClose }: Props) {
  const name = { id: listed.webhookId, deliveryId: listed.id };
  const { data } = useQuery(WebhookService.method.getWebhookDelivery, name, { refetchInterval: POLL_MS });
  const again = useChange(WebhookService.method.redeliverWebhookDelivery);
  const delivery = data ?? listed;
  return (
    <Dialog title="Delivery" onClose={onClose}>
      <code>{delivery.id}</code>
      <h3>Body of the request</h3>
      <pre>{bodyOf(delivery)}</pre>
      <h3>Attempts</h3>
      {delivery.attempts.length === 0 ? <p>None yet.</p> : null}
      {delivery.attempts.toReversed().map((attempt) => (
        <Attempt key={attempt.number} attempt={attempt} />
      ))}
      {again.error === null ? null : <ErrorState error={again.error} />}
      <div class="actions">
        <Button
          calls={WebhookService.method.redeliverWebhookDelivery}
          disabled={again.isPending}
          onClick={() => again.mutate(name)}
        >
          Redeliver
        </Button>
        <Button isPrimary onClick={onClose}>
          Close
        </Button>
      </div>
    </Dialog>
  );
}

/** The body of the request, as the receiver gets it. */
function bodyOf({ event }: WebhookDelivery): string {
  if (event === undefined) return '';
  const { id, type, created, data } = event;
  const at = created === undefined ? undefined : timestampDate(created).toISOString();
  return safeJson({ id, type: enumName(EventTypeSchema, type), created: at, data });
}

function Attempt({ attempt }: { attempt: WebhookAttempt }) {
  const { number, at, durationMs, statusCode, error, answer, requestHeaders } = attempt;
  const isGood = statusCode !== undefined && statusCode >= 200 && statusCode < 300;
  return (
    <section class="card">
      <div class="head">
        <h4>Attempt {number}</h4>
        <Status tone={isGood ? 'good' : 'bad'}>
          {statusCode === undefined ? 'no answer' : String(statusCode)}
        </Status>
      </div>
      <p class="hint">
        <Time at={at} />, {durationMs} ms
      </p>
      {error ? <p>{safe(error)}</p> : null}
      {requestHeaders.length === 0 ? null : (
        <details>
          <summary>Request</summary>
          <pre>{headOf(attempt)}</pre>
        </details>
      )}
      {answer ? (
        <>
          <h5>Response</h5>
          <pre>{answer.split('\n').map(safe).join('\n')}</pre>
        </>
      ) : null}
    </section>
  );
}

/** The request's line and headers; the service leaves signatures out. */
function headOf({ url, requestHeaders }: WebhookAttempt): string {
  const lines = requestHeaders.map(({ name, value }) => `${name}: ${value}`);
  return [`POST ${url ?? '(where to was not recorded)'}`, ...lines].map(safe).join('\n');
}
