import { useState } from 'preact/hooks';
import { TrustRuleService } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { environmentNumber } from '../../../protocol/environment.js';
import { GITHUB, GITLAB } from '../../../protocol/known-issuers.js';
import { readClaims } from '../read-claims.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { Checks } from '../ui/check.js';
import { Choice } from '../ui/choice.js';
import { Dialog } from '../ui/dialog.js';
import { Field } from '../ui/field.js';
import { Segments } from '../ui/segments.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';
import { ENVIRONMENTS } from './create-key.js';

const KINDS = [
  ['github', 'GitHub Actions'],
  ['gitlab', 'GitLab CI'],
  ['other', 'Another issuer'],
] as const;
const PRESETS = { github: GITHUB, gitlab: GITLAB, other: undefined };
const DEFAULT_SCOPES = ['attestations:read', 'attestations:write'];

type Kind = (typeof KINDS)[number][0];

/** The form that adds a trust rule. */
export function CreateTrustRule({ onClose }: { onClose: () => void }) {
  const { scope, session } = useScope();
  const [kind, setKind] = useState<Kind>('github');
  const [repository, setRepository] = useState('');
  const [issuer, setIssuer] = useState(GITHUB.issuer);
  const [claims, setClaims] = useState('');
  const [environment, setEnvironment] = useState(scope.environment);
  const [scopes, setScopes] = useState(DEFAULT_SCOPES);
  const create = useChange(TrustRuleService.method.createTrustRule);
  const preset = PRESETS[kind];
  const choose = (chosen: Kind) => {
    setKind(chosen);
    setIssuer(PRESETS[chosen]?.issuer ?? '');
  };
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const named = preset === undefined ? {} : { [preset.repositoryClaim]: repository };
    await create.mutateAsync({
      projectId: scope.projectId,
      environment: environmentNumber(environment),
      issuer,
      conditions: { ...named, ...readClaims(claims) },
      scopes,
      recordedClaims: [...(preset?.recordedClaims ?? [])],
      reusableTokens: preset?.reusableTokens ?? false,
    });
    onClose();
  };
  return (
    <Dialog title="Add a trust rule" onClose={onClose}>
      <form onSubmit={(event) => void submit(event).catch(() => {})}>
        <Choice label="Jobs of" options={KINDS} value={kind} onChange={choose} />
        {preset === undefined ? null : (
          <Field
            label="Repository"
            value={repository}
            onChange={setRepository}
            required
            placeholder="acme/app"
          />
        )}
        <Field label="Issuer" value={issuer} onChange={setIssuer} required maxLength={512} />
        <Field
          label="Claims that the token must have"
          value={claims}
          onChange={setClaims}
          rows={3}
          required={preset === undefined}
          placeholder="ref=refs/heads/main"
        />
        <Segments label="Environment" options={ENVIRONMENTS} value={environment} onChange={setEnvironment} />
        <Checks label="Scopes" options={session.scopes} value={scopes} onChange={setScopes} />
        {create.error === null ? null : <ErrorState error={create.error} />}
        <div class="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" isPrimary disabled={scopes.length === 0 || create.isPending}>
            Add rule
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
