import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useEffect } from 'preact/hooks';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import type { Session } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import type { Scope } from './transport.js';
import { Choice } from './ui/choice.js';
import { safe } from './ui/safe.js';
import { Segments } from './ui/segments.js';
import { useEveryRow } from './use-every-row.js';

type Props = { session: Session; scope: Scope; onChange: (scope: Scope) => void };

const ENVIRONMENTS = [
  ['live', 'Live'],
  ['test', 'Test'],
] as const;

/** Chooses the environment and, in the session of an operator or person, the project. */
export function ScopePicker({ session, scope, onChange }: Props) {
  return (
    <div class="scope">
      {session.projectId !== '' ? (
        <strong class="project">{safe(session.projectName)}</strong>
      ) : session.memberships.length > 0 ? (
        <Choice
          label="Project"
          isLabelHidden
          options={session.memberships.map((one) => [one.projectId, safe(one.projectName)])}
          value={scope.projectId}
          onChange={(projectId) => onChange({ ...scope, projectId })}
        />
      ) : (
        <ProjectChoice scope={scope} onChange={onChange} />
      )}
      <Segments
        label="Environment"
        options={ENVIRONMENTS}
        value={scope.environment}
        onChange={(environment) => onChange({ ...scope, environment })}
      />
    </div>
  );
}

function ProjectChoice({ scope, onChange }: Omit<Props, 'session'>) {
  const list = useInfiniteQuery(
    ProjectService.method.listProjects,
    { limit: 200, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  const projects = useEveryRow(list);
  const oldest = projects.at(-1)?.id;
  const isKnown = projects.some(({ id }) => id === scope.projectId);
  const isRead = !list.hasNextPage && !list.isFetching;
  useEffect(() => {
    if (isRead && !isKnown && oldest !== undefined) onChange({ ...scope, projectId: oldest });
  }, [isRead, isKnown, oldest, scope, onChange]);
  return (
    <Choice
      label="Project"
      isLabelHidden
      options={projects.map(({ id, name }) => [id, safe(name)])}
      value={scope.projectId}
      onChange={(projectId) => onChange({ ...scope, projectId })}
    />
  );
}
