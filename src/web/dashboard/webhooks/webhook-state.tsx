import {
  type Webhook,
  WebhookStatus,
  WebhookStatusSchema,
} from '../../../../gen/attestation/v1/webhooks_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { safe } from '../ui/safe.js';
import { Status } from '../ui/status.js';
import { Time } from '../ui/time.js';

/** The status of a subscription, and why it is not well. */
export function WebhookState({ webhook: { status, disabledReason, failingSince } }: { webhook: Webhook }) {
  const isActive = status === WebhookStatus.ACTIVE;
  const isFailing = isActive && failingSince !== undefined;
  const tone = (isFailing && 'wait') || (isActive && 'good') || 'bad';
  return (
    <div>
      <Status tone={tone}>{isFailing ? 'failing' : enumName(WebhookStatusSchema, status)}</Status>
      {isFailing ? (
        <span class="sub">
          since <Time at={failingSince} />
        </span>
      ) : null}
      {disabledReason ? <span class="sub">{safe(disabledReason)}</span> : null}
    </div>
  );
}
