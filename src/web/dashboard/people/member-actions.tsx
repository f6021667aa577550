import { useState } from 'preact/hooks';
import { type Member, PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import type { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { Button } from '../ui/button.js';
import { Choice } from '../ui/choice.js';
import { Confirm } from '../ui/confirm.js';
import { Dialog } from '../ui/dialog.js';
import { safe } from '../ui/safe.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';
import { ROLES } from './roles.js';

/** What an admin can do with somebody who has a role. */
export function MemberActions({ member }: { member: Member }) {
  const [open, setOpen] = useState<'role' | 'remove'>();
  const close = () => setOpen(undefined);
  const name = safe(member.person?.name ?? '');
  return (
    <div class="row">
      <Button
        isQuiet
        calls={PersonService.method.setRole}
        onClick={() => setOpen('role')}
        aria-label={`Change role of ${name}`}
      >
        Change role
      </Button>
      <Button
        isQuiet
        calls={PersonService.method.removeMember}
        onClick={() => setOpen('remove')}
        aria-label={`Remove ${name}`}
      >
        Remove
      </Button>
      {open === 'role' ? <ChangeRole member={member} name={name} onClose={close} /> : null}
      {open === 'remove' ? <Remove member={member} name={name} onClose={close} /> : null}
    </div>
  );
}

type Props = { member: Member; name: string; onClose: () => void };

function ChangeRole({ member, name, onClose }: Props) {
  const { projectId, person } = member;
  const [role, setRole] = useState(String(member.role));
  const change = useChange(PersonService.method.setRole);
  const run = () =>
    change.mutate(
      { projectId, personId: person?.id ?? '', role: Number(role) as Role },
      { onSuccess: onClose },
    );
  return (
    <Dialog title={`Role of ${name}`} onClose={onClose}>
      <Choice label="Role" options={ROLES} value={role} onChange={setRole} />
      {member.ruleIds.length === 0 ? null : <p>A higher role by a rule stays.</p>}
      {change.error === null ? null : <ErrorState error={change.error} />}
      <div class="actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button isPrimary disabled={change.isPending} onClick={run}>
          Set role
        </Button>
      </div>
    </Dialog>
  );
}

function Remove({ member: { projectId, person, ruleIds }, name, onClose }: Props) {
  const [revokeCredentials, setRevoke] = useState(false);
  const remove = useChange(PersonService.method.removeMember);
  return (
    <Confirm
      title={`Remove ${name}?`}
      action="Remove"
      change={remove}
      onClose={onClose}
      onConfirm={() =>
        remove.mutate({ projectId, personId: person?.id ?? '', revokeCredentials }, { onSuccess: onClose })
      }
    >
      <p>The role in this project ends at once.</p>
      {ruleIds.length === 0 ? null : (
        <p class="notice">A rule gives it again at the next sign-in, for as long as it is met.</p>
      )}
      <label class="check">
        <input type="checkbox" checked={revokeCredentials} onChange={() => setRevoke(!revokeCredentials)} />
        Revoke the keys and trust rules that this person made
      </label>
    </Confirm>
  );
}
