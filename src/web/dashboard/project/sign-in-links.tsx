import { useMutation } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { Button } from '../ui/button.js';
import { Confirm } from '../ui/confirm.js';
import { Copyable } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { ErrorState } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { useChange } from '../use-change.js';

/** Makes links that sign in to the project, and ends its sessions. */
export function SignInLinks({ projectId }: { projectId: string }) {
  const [isRevoking, setRevoking] = useState(false);
  const make = useMutation(SessionService.method.createSignInLink);
  const revoke = useChange(SessionService.method.revokeSessions);
  const close = () => setRevoking(false);
  return (
    <section class="card" aria-labelledby="access">
      <h2 id="access">Access of the project’s people</h2>
      <p>
        A sign-in link opens this dashboard for the project alone. It works once, for minutes only, and starts
        a session that ends by itself.
      </p>
      {make.error === null ? null : <ErrorState error={make.error} />}
      <div class="row">
        <Button isPrimary disabled={make.isPending} onClick={() => make.mutate({ projectId })}>
          Make a sign-in link
        </Button>
        <Button isDanger onClick={() => setRevoking(true)}>
          End all sessions
        </Button>
        <span role="status">
          {revoke.data === undefined
            ? ''
            : `${revoke.data.sessions} sessions and ${revoke.data.links} links were ended.`}
        </span>
      </div>
      {make.data === undefined ? null : (
        <Dialog title="The sign-in link" onClose={make.reset} isFirm>
          <p class="notice">
            Send it to one person by a channel that you trust. It works until{' '}
            <Time at={make.data.expiresAt} />.
          </p>
          <Copyable label="sign-in link" text={make.data.url} />
          <div class="actions">
            <Button isPrimary onClick={make.reset}>
              I have copied it
            </Button>
          </div>
        </Dialog>
      )}
      {isRevoking ? (
        <Confirm
          title="End all sessions of the project?"
          action="End them"
          change={revoke}
          onClose={close}
          onConfirm={() => revoke.mutate({ projectId }, { onSuccess: close })}
        >
          <p>Its people are signed out at once, and links that are not used yet stop working.</p>
        </Confirm>
      ) : null}
    </section>
  );
}
