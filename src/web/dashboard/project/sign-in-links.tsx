import { useMutation } from '@connectrpc/connect-query';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { Button } from '../ui/button.js';
import { Copyable } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { ErrorState } from '../ui/states.js';
import { Time } from '../ui/time.js';

/** Makes links that sign in to the project. */
export function SignInLinks({ projectId }: { projectId: string }) {
  const make = useMutation(SessionService.method.createSignInLink);
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
    </section>
  );
}
