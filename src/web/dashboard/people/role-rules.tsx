import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { PersonService, type RoleRule } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { RoleSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
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
import { CreateRoleRule } from './create-role-rule.js';

const { createRoleRule, deleteRoleRule, listRoleRules } = PersonService.method;

/** The rules by which people get a role in the project when they sign in. */
export function RoleRules() {
  const { projectId } = useScope().scope;
  const [isCreating, setCreating] = useState(false);
  const pages = useInfiniteQuery(
    listRoleRules,
    { projectId, limit: 100, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  return (
    <section aria-labelledby="role-rules">
      <header class="head">
        <div>
          <h2 id="role-rules">Role rules</h2>
          <p>People whose claims at the identity provider meet a rule have its role when they sign in.</p>
        </div>
        <Button calls={createRoleRule} onClick={() => setCreating(true)}>
          Add role rule
        </Button>
      </header>
      <PageList
        what="role rules"
        pages={pages}
        empty={<Empty title="No role rules yet">Add one for a group of the identity provider.</Empty>}
      >
        {(rows) => <DataTable label="Role rules" columns={COLUMNS} data={rows} idOf={({ id }) => id} />}
      </PageList>
      {isCreating ? <CreateRoleRule onClose={() => setCreating(false)} /> : null}
    </section>
  );
}

const COLUMNS: Column<RoleRule>[] = [
  { header: 'Who', cell: (row) => <Who rule={row} /> },
  { header: 'Role', cell: ({ role }) => enumName(RoleSchema, role) },
  { header: 'Made by', cell: ({ createdBy }) => safe(createdBy?.name ?? '–') },
  { header: 'Created', cell: (row) => <Time at={row.createdAt} /> },
  { header: 'Actions', calls: [deleteRoleRule], cell: (row) => <Delete rule={row} /> },
];

function conditionsText({ conditions }: RoleRule): string {
  const texts = Object.entries(conditions).map(([name, pattern]) => `${name}: ${pattern}`);
  return safe(texts.sort().join(', '));
}

function Who({ rule }: { rule: RoleRule }) {
  return (
    <div>
      <strong>{conditionsText(rule)}</strong>
      <code class="sub">{rule.id}</code>
    </div>
  );
}

function Delete({ rule }: { rule: RoleRule }) {
  const [isOpen, setOpen] = useState(false);
  const remove = useChange(deleteRoleRule);
  const { id, projectId } = rule;
  const close = () => setOpen(false);
  return (
    <>
      <Button isQuiet onClick={() => setOpen(true)} aria-label={`Delete ${conditionsText(rule)}`}>
        Delete
      </Button>
      {isOpen ? (
        <Confirm
          title="Delete this rule?"
          action="Delete rule"
          change={remove}
          onClose={close}
          onConfirm={() => remove.mutate({ id, projectId }, { onSuccess: close })}
        >
          <p>The roles that it gave end at once.</p>
        </Confirm>
      ) : null}
    </>
  );
}
