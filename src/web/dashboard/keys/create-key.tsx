import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { useState } from 'preact/hooks';
import { type ApiKey, ApiKeyService } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { environmentNumber } from '../../../protocol/environment.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { Checks } from '../ui/check.js';
import { Choice } from '../ui/choice.js';
import { Dialog } from '../ui/dialog.js';
import { Field } from '../ui/field.js';
import { Segments } from '../ui/segments.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';
import { LimitFields, type Limits, readLimits } from './limit-fields.js';

const DAY_MS = 86_400_000;
const EXPIRIES = [
  ['0', 'Never'],
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['365', 'One year'],
] as const;
/** The environments to choose from. */
export const ENVIRONMENTS = [
  ['live', 'Live'],
  ['test', 'Test'],
] as const;

type Props = { onClose: () => void; onMade: (key: ApiKey) => void };

/** The form that makes a key. */
export function CreateKey({ onClose, onMade }: Props) {
  const { scope, session } = useScope();
  const [name, setName] = useState('');
  const [environment, setEnvironment] = useState(scope.environment);
  const [scopes, setScopes] = useState(session.scopes);
  const [days, setDays] = useState<(typeof EXPIRIES)[number][0]>('90');
  const [limits, setLimits] = useState<Limits>({});
  const create = useChange(ApiKeyService.method.createApiKey);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const made = await create.mutateAsync({
      projectId: scope.projectId,
      environment: environmentNumber(environment),
      name,
      scopes,
      limits: readLimits(limits),
      ...(days === '0' ? {} : { expiresAt: timestampFromMs(Date.now() + Number(days) * DAY_MS) }),
    });
    onClose();
    onMade(made);
  };
  return (
    <Dialog title="Create an API key" onClose={onClose}>
      <form onSubmit={(event) => void submit(event).catch(() => {})}>
        <Field
          label="Name"
          value={name}
          onChange={setName}
          required
          autofocus
          maxLength={200}
          placeholder="ci"
        />
        <div class="row end">
          <div class="group">
            <span aria-hidden="true">Environment</span>
            <Segments
              label="Environment"
              options={ENVIRONMENTS}
              value={environment}
              onChange={setEnvironment}
            />
          </div>
          <Choice label="Expires after" options={EXPIRIES} value={days} onChange={setDays} />
        </div>
        <Checks label="Scopes" options={session.scopes} value={scopes} onChange={setScopes} />
        <LimitFields limits={limits} onChange={setLimits} />
        {create.error === null ? null : <ErrorState error={create.error} />}
        <div class="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" isPrimary disabled={name === '' || scopes.length === 0 || create.isPending}>
            Create key
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
