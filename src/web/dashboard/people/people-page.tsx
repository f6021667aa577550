import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { type Member, PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { Role, RoleSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { useMay, useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { PageHead } from '../ui/page-head.js';
import { PageList } from '../ui/page-list.js';
import { safe } from '../ui/safe.js';
import { Empty } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { Invitations } from './invitations.js';
import { Invite } from './invite.js';
import { MemberActions } from './member-actions.js';
import { RoleRules } from './role-rules.js';

/** The people with a role in the project. Admins change them. */
export function PeoplePage() {
  const { projectId } = useScope().scope;
  const may = useMay();
  const [isInviting, setInviting] = useState(false);
  const pages = useInfiniteQuery(
    PersonService.method.listPeople,
    { projectId, limit: 100, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  return (
    <>
      <PageHead
        title="People"
        hint="Who has a role in the project, and by what. Operators have every project."
      >
        <Button isPrimary calls={PersonService.method.createInvitation} onClick={() => setInviting(true)}>
          Invite
        </Button>
      </PageHead>
      <PageList
        what="people"
        pages={pages}
        empty={<Empty title="Nobody has a role yet">An admin or operator invites people.</Empty>}
      >
        {(people) => (
          <DataTable label="People" columns={COLUMNS} data={people} idOf={({ person }) => person?.id ?? ''} />
        )}
      </PageList>
      {may(PersonService.method.listInvitations) ? <Invitations /> : null}
      <RoleRules />
      {isInviting ? <Invite onClose={() => setInviting(false)} /> : null}
    </>
  );
}

const COLUMNS: Column<Member>[] = [
  { header: 'Name', cell: (row) => <Name member={row} /> },
  { header: 'Role', cell: ({ role }) => enumName(RoleSchema, role) },
  { header: 'By', cell: (row) => sourceOf(row) },
  { header: 'Last sign-in', cell: (row) => <Time at={row.signedInAt} none="–" /> },
  {
    header: 'Actions',
    calls: [PersonService.method.setRole, PersonService.method.removeMember],
    cell: (row) => <MemberActions member={row} />,
  },
];

function Name({ member: { person } }: { member: Member }) {
  return (
    <div>
      <strong>{safe(person?.name ?? '')}</strong>
      <span class="sub">{safe(person?.email ?? '')}</span>
    </div>
  );
}

function sourceOf({ invitedAs, ruleIds }: Member): string {
  const invited = invitedAs === Role.UNSPECIFIED ? [] : ['invitation'];
  return [...invited, ...ruleIds.map((id) => `rule ${id}`)].join(', ');
}
