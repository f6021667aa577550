import type { Webhook } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { Button } from '../ui/button.js';
import { Copyable } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';

/** Shows the secret of a subscription, the only time that it can be seen. */
export function WebhookSecret({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  return (
    <Dialog title="The webhook’s secret" onClose={onClose} isFirm>
      <p class="notice">
        Copy it now: your receiver verifies signatures with it. It is shown only this once.
      </p>
      <Copyable label="secret" text={webhook.secret ?? ''} />
      <div class="actions">
        <Button isPrimary onClick={onClose}>
          I have copied it
        </Button>
      </div>
    </Dialog>
  );
}
