import { useState } from 'preact/hooks';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { Choice } from '../ui/choice.js';
import { Copyable } from '../ui/copy.js';
import { Dialog } from '../ui/dialog.js';
import { Field } from '../ui/field.js';
import { ErrorState } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { useChange } from '../use-change.js';
import { ROLES } from './roles.js';

/** The form that invites somebody, and the link that it makes, which shows only once. */
export function Invite({ onClose }: { onClose: () => void }) {
  const { projectId } = useScope().scope;
  const [role, setRole] = useState(String(Role.MEMBER));
  const [email, setEmail] = useState('');
  const invite = useChange(PersonService.method.createInvitation);
  if (invite.data !== undefined)
    return (
      <Dialog title="The invitation" onClose={onClose} isFirm>
        <p class="notice">
          Copy it now: it is shown only this once. It works once, until <Time at={invite.data.expiresAt} />.
        </p>
        <Copyable label="invitation link" text={invite.data.url} />
        <div class="actions">
          <Button isPrimary onClick={onClose}>
            I have copied it
          </Button>
        </div>
      </Dialog>
    );
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    invite.mutate({ projectId, role: Number(role) as Role, email: email.trim() });
  };
  return (
    <Dialog title="Invite somebody" onClose={onClose}>
      <form onSubmit={submit}>
        <Choice label="Role" options={ROLES} value={role} onChange={setRole} />
        <Field label="E-mail address (optional)" value={email} onChange={setEmail} maxLength={320} />
        <p class="hint">
          With an address only the person may accept it whose address the identity provider has verified;
          without one, whoever opens the link first.
        </p>
        {invite.error === null ? null : <ErrorState error={invite.error} />}
        <div class="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" isPrimary disabled={invite.isPending}>
            Make the link
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
