import { useState } from 'preact/hooks';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { Button } from '../ui/button.js';
import { Confirm } from '../ui/confirm.js';
import { useChange } from '../use-change.js';

/** Ends all sessions and unused sign-in links of the project, after a question. */
export function EndAllSessions({ projectId }: { projectId: string }) {
  const [isRevoking, setRevoking] = useState(false);
  const revoke = useChange(SessionService.method.revokeSessions);
  const close = () => setRevoking(false);
  return (
    <>
      <div class="row">
        <Button isDanger calls={SessionService.method.revokeSessions} onClick={() => setRevoking(true)}>
          End all sessions
        </Button>
        <span role="status">
          {revoke.data === undefined
            ? ''
            : `${revoke.data.sessions} sessions and ${revoke.data.links} links were ended.`}
        </span>
      </div>
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
    </>
  );
}
