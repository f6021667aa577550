import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { useState } from 'preact/hooks';
import {
  type ApiKey,
  ApiKeyService,
  ApiKeyStatus,
} from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { Button } from '../ui/button.js';
import { Choice } from '../ui/choice.js';
import { Confirm } from '../ui/confirm.js';
import { Dialog } from '../ui/dialog.js';
import { safe } from '../ui/safe.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';

type Props = { apiKey: ApiKey; onMade: (key: ApiKey) => void };

/** What can be done with a key that works. */
export function KeyActions({ apiKey, onMade }: Props) {
  const [open, setOpen] = useState<'rotate' | 'revoke'>();
  if (apiKey.status !== ApiKeyStatus.ACTIVE) return <span>–</span>;
  const close = () => setOpen(undefined);
  return (
    <div class="row">
      {apiKey.successorId === undefined ? (
        <Button
          isQuiet
          calls={ApiKeyService.method.rotateApiKey}
          onClick={() => setOpen('rotate')}
          aria-label={`Rotate ${safe(apiKey.name)}`}
        >
          Rotate
        </Button>
      ) : null}
      <Button
        isQuiet
        calls={ApiKeyService.method.revokeApiKey}
        onClick={() => setOpen('revoke')}
        aria-label={`Revoke ${safe(apiKey.name)}`}
      >
        Revoke
      </Button>
      {open === 'rotate' ? <Rotate apiKey={apiKey} onMade={onMade} onClose={close} /> : null}
      {open === 'revoke' ? <Revoke apiKey={apiKey} onClose={close} /> : null}
    </div>
  );
}

const HOUR_MS = 3_600_000;
const OVERLAPS = [
  ['0', 'End it at once'],
  ['1', '1 hour'],
  ['24', '24 hours'],
  ['168', '7 days'],
  ['720', '30 days'],
] as const;

function Rotate({ apiKey, onMade, onClose }: Props & { onClose: () => void }) {
  const [hours, setHours] = useState<(typeof OVERLAPS)[number][0]>('24');
  const rotate = useChange(ApiKeyService.method.rotateApiKey);
  const run = async () => {
    const made = await rotate.mutateAsync({
      id: apiKey.id,
      overlap: durationFromMs(Number(hours) * HOUR_MS),
    });
    onClose();
    onMade(made);
  };
  return (
    <Dialog title={`Rotate ${safe(apiKey.name)}`} onClose={onClose}>
      <p>Makes a new key with the same scopes and limits. Both work until the overlap is over.</p>
      <Choice label="The old key works for another" options={OVERLAPS} value={hours} onChange={setHours} />
      {rotate.error === null ? null : <ErrorState error={rotate.error} />}
      <div class="actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button isPrimary disabled={rotate.isPending} onClick={() => void run().catch(() => {})}>
          Rotate key
        </Button>
      </div>
    </Dialog>
  );
}

function Revoke({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const revoke = useChange(ApiKeyService.method.revokeApiKey);
  return (
    <Confirm
      title={`Revoke ${safe(apiKey.name)}?`}
      action="Revoke key"
      change={revoke}
      onClose={onClose}
      onConfirm={() => revoke.mutate({ id: apiKey.id }, { onSuccess: onClose })}
    >
      <p>
        Programs that use <code>{`${apiKey.prefix}…${apiKey.last4}`}</code> stop working at once. This cannot
        be undone.
      </p>
    </Confirm>
  );
}
