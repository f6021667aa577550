import { useInfiniteQuery } from '@connectrpc/connect-query';
import { type Invitation, PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import { RoleSchema } from '../../../../gen/attestation/options/v1/options_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { PageList } from '../ui/page-list.js';
import { safe } from '../ui/safe.js';
import { Empty, ErrorState } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { useChange } from '../use-change.js';

/** The invitations to the project that nobody has accepted yet. */
export function Invitations() {
  const { projectId } = useScope().scope;
  const pages = useInfiniteQuery(
    PersonService.method.listInvitations,
    { projectId, limit: 100, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  return (
    <section aria-labelledby="invitations">
      <h2 id="invitations">Open invitations</h2>
      <PageList
        what="invitations"
        pages={pages}
        empty={
          <Empty title="No invitation is open">Those that are accepted or have expired are not here.</Empty>
        }
      >
        {(rows) => <DataTable label="Open invitations" columns={COLUMNS} data={rows} idOf={({ id }) => id} />}
      </PageList>
    </section>
  );
}

const COLUMNS: Column<Invitation>[] = [
  { header: 'For', cell: ({ email }) => (email === '' ? 'whoever has the link' : safe(email)) },
  { header: 'Role', cell: ({ role }) => enumName(RoleSchema, role) },
  { header: 'Made by', cell: ({ createdBy }) => safe(createdBy?.name ?? '–') },
  { header: 'Expires', cell: (row) => <Time at={row.expiresAt} /> },
  {
    header: 'Actions',
    calls: [PersonService.method.deleteInvitation],
    cell: (row) => <TakeBack invitation={row} />,
  },
];

function TakeBack({ invitation: { id, projectId } }: { invitation: Invitation }) {
  const remove = useChange(PersonService.method.deleteInvitation);
  return (
    <>
      <Button
        isQuiet
        disabled={remove.isPending}
        onClick={() => remove.mutate({ id, projectId })}
        aria-label={`Take back ${id}`}
      >
        Take back
      </Button>
      {remove.error === null ? null : <ErrorState error={remove.error} />}
    </>
  );
}
