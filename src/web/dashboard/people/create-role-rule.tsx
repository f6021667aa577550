import { useState } from 'preact/hooks';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { readClaims } from '../read-claims.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { Choice } from '../ui/choice.js';
import { Dialog } from '../ui/dialog.js';
import { Field } from '../ui/field.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';
import { ROLES } from './roles.js';

/** The form that adds a role rule. */
export function CreateRoleRule({ onClose }: { onClose: () => void }) {
  const { projectId } = useScope().scope;
  const [role, setRole] = useState(String(Role.VIEWER));
  const [claims, setClaims] = useState('');
  const create = useChange(PersonService.method.createRoleRule);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const wanted = { projectId, role: Number(role) as Role, conditions: readClaims(claims) };
    create.mutate(wanted, { onSuccess: onClose });
  };
  return (
    <Dialog title="Add a role rule" onClose={onClose}>
      <form onSubmit={submit}>
        <Choice label="Role" options={ROLES} value={role} onChange={setRole} />
        <Field
          label="Claims that the person must have"
          value={claims}
          onChange={setClaims}
          rows={3}
          required
          placeholder="groups=developers"
        />
        <p class="hint">One on each line, all of which must hold. * matches any characters.</p>
        {create.error === null ? null : <ErrorState error={create.error} />}
        <div class="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" isPrimary disabled={create.isPending}>
            Add role rule
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
