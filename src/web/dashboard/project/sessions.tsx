import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { type OpenSession, SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { Button } from '../ui/button.js';
import { Confirm } from '../ui/confirm.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { PageList } from '../ui/page-list.js';
import { safe } from '../ui/safe.js';
import { Empty } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { useChange } from '../use-change.js';
import { EndAllSessions } from './end-all-sessions.js';

type Props = {
  title: string;
  /** The project whose sessions; the operator’s own if undefined. */
  projectId?: string;
};

/** The sessions of a project or of the operator that have not ended and that the caller sees, to end them. */
export function Sessions({ title, projectId }: Props) {
  const owner =
    projectId === undefined
      ? { case: 'operator' as const, value: true }
      : { case: 'projectId' as const, value: projectId };
  const pages = useInfiniteQuery(
    SessionService.method.listSessions,
    { owner, limit: 20, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {projectId === undefined ? null : <EndAllSessions projectId={projectId} />}
      <PageList
        what={title}
        pages={pages}
        empty={<Empty title="Nobody is signed in">No session is open.</Empty>}
      >
        {(sessions) => <DataTable label={title} columns={COLUMNS} data={sessions} idOf={({ id }) => id} />}
      </PageList>
    </section>
  );
}

const COLUMNS: Column<OpenSession>[] = [
  { header: 'Session', cell: (row) => <Origin session={row} /> },
  { header: 'Started', cell: (row) => <Time at={row.createdAt} /> },
  { header: 'Last use', cell: (row) => <Time at={row.lastUsedAt} /> },
  { header: 'Ends', cell: (row) => <Time at={row.expiresAt} /> },
  {
    header: 'Actions',
    calls: [SessionService.method.endSession],
    cell: (row) => <EndSession session={row} />,
  },
];

function Origin({ session: { id, linkId, isOwn, person } }: { session: OpenSession }) {
  return (
    <div>
      <code>{id}</code>
      <span class="sub">
        {isOwn
          ? 'this one'
          : person
            ? 'by the identity provider'
            : linkId === ''
              ? 'by the admin token'
              : `by ${linkId}`}
      </span>
      {person === undefined ? null : <span class="sub">{safe(person.name)}</span>}
    </div>
  );
}

function EndSession({ session: { id, isOwn } }: { session: OpenSession }) {
  const [isAsked, setAsked] = useState(false);
  const end = useChange(SessionService.method.endSession);
  const close = () => setAsked(false);
  if (isOwn) return <span>–</span>;
  return (
    <>
      <Button isQuiet onClick={() => setAsked(true)} aria-label={`End ${id}`}>
        End
      </Button>
      {isAsked ? (
        <Confirm
          title="End this session?"
          action="End it"
          change={end}
          onClose={close}
          onConfirm={() => end.mutate({ id }, { onSuccess: close })}
        >
          <p>Whoever has it is signed out at once.</p>
        </Confirm>
      ) : null}
    </>
  );
}
