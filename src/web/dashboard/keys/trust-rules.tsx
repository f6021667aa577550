import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { type TrustRule, TrustRuleService } from '../../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { EnvironmentSchema } from '../../../../gen/attestation/v1/environment_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { Confirm } from '../ui/confirm.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { PageList } from '../ui/page-list.js';
import { safe } from '../ui/safe.js';
import { Empty } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { useChange } from '../use-change.js';
import { CreateTrustRule } from './create-trust-rule.js';

/** The trust rules of the project, of both environments. */
export function TrustRules() {
  const { projectId } = useScope().scope;
  const [isCreating, setCreating] = useState(false);
  const pages = useInfiniteQuery(
    TrustRuleService.method.listTrustRules,
    { projectId, limit: 100, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  return (
    <section aria-labelledby="trust-rules">
      <header class="head">
        <div>
          <h2 id="trust-rules">Trust rules</h2>
          <p>Jobs of a CI exchange their own token for a key of 15 minutes, and store none.</p>
        </div>
        <Button calls={TrustRuleService.method.createTrustRule} onClick={() => setCreating(true)}>
          Add rule
        </Button>
      </header>
      <PageList
        what="trust rules"
        pages={pages}
        empty={<Empty title="No trust rules yet">Add one for the repository of a pipeline.</Empty>}
      >
        {(rules) => <DataTable label="Trust rules" columns={COLUMNS} data={rules} idOf={({ id }) => id} />}
      </PageList>
      {isCreating ? <CreateTrustRule onClose={() => setCreating(false)} /> : null}
    </section>
  );
}

const COLUMNS: Column<TrustRule>[] = [
  { header: 'Trusts', cell: (row) => <Trusted rule={row} /> },
  { header: 'Environment', cell: (row) => enumName(EnvironmentSchema, row.environment) },
  { header: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
  { header: 'Created', cell: (row) => <Time at={row.createdAt} none="–" /> },
  {
    header: 'Actions',
    calls: [TrustRuleService.method.removeTrustRule],
    cell: (row) => <Remove rule={row} />,
  },
];

function conditionsText({ conditions }: TrustRule): string {
  const texts = Object.entries(conditions).map(([name, pattern]) => `${name}: ${pattern}`);
  return safe(texts.sort().join(', '));
}

function Trusted({ rule }: { rule: TrustRule }) {
  return (
    <div>
      <strong>{conditionsText(rule)}</strong>
      <code class="sub">{safe(rule.issuer)}</code>
      {rule.createdBy === undefined ? null : <span class="sub">made by {safe(rule.createdBy.name)}</span>}
    </div>
  );
}

function Remove({ rule }: { rule: TrustRule }) {
  const [isOpen, setOpen] = useState(false);
  const remove = useChange(TrustRuleService.method.removeTrustRule);
  const close = () => setOpen(false);
  return (
    <>
      <Button isQuiet onClick={() => setOpen(true)} aria-label={`Remove ${conditionsText(rule)}`}>
        Remove
      </Button>
      {isOpen ? (
        <Confirm
          title="Remove this rule?"
          action="Remove rule"
          change={remove}
          onClose={close}
          onConfirm={() => remove.mutate({ id: rule.id }, { onSuccess: close })}
        >
          <p>Keys that were exchanged by it stop working at once. This cannot be undone.</p>
        </Confirm>
      ) : null}
    </>
  );
}
