import { useState } from 'preact/hooks';
import {
  EventType,
  EventTypeSchema,
  type Webhook,
  WebhookService,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumName, findEnumNumber } from '../../../protocol/enum-names.js';
import { Button } from '../ui/button.js';
import { Checks } from '../ui/check.js';
import { Dialog } from '../ui/dialog.js';
import { Field } from '../ui/field.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';

/** Tests are sent to every subscription. */
const NOT_SUBSCRIBED: readonly number[] = [EventType.UNSPECIFIED, EventType.WEBHOOK_TEST];
const EVENTS = EventTypeSchema.values
  .filter(({ number }) => !NOT_SUBSCRIBED.includes(number))
  .map(({ number }) => enumName(EventTypeSchema, number));

type Props = { onClose: () => void; onMade: (webhook: Webhook) => void };

/** The form that subscribes an address. */
export function CreateWebhook({ onClose, onMade }: Props) {
  const [url, setUrl] = useState('https://');
  const [events, setEvents] = useState(EVENTS);
  const create = useChange(WebhookService.method.createWebhook);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const types = events.map((name) => findEnumNumber(EventTypeSchema, name) as EventType);
    const made = await create.mutateAsync({ url, events: types });
    onClose();
    onMade(made);
  };
  return (
    <Dialog title="Add a webhook" onClose={onClose}>
      <form onSubmit={(event) => void submit(event).catch(() => {})}>
        <Field label="Address" value={url} onChange={setUrl} required autofocus maxLength={2048} />
        <Checks label="Events" options={EVENTS} value={events} onChange={setEvents} />
        {create.error === null ? null : <ErrorState error={create.error} />}
        <div class="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" isPrimary disabled={url === '' || events.length === 0 || create.isPending}>
            Add webhook
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
