import { useQuery } from '@connectrpc/connect-query';
import { type Project, ProjectService } from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { SessionService } from '../../../../gen/attestation/admin/v1/sessions_pb.js';
import { useMay, useScope } from '../scope.js';
import { PageHead } from '../ui/page-head.js';
import { safe } from '../ui/safe.js';
import { ErrorState, Loading } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { LOOKUPS } from './lookups.js';
import { ProjectSettings } from './project-settings.js';
import { Sessions } from './sessions.js';
import { SignInLinks } from './sign-in-links.js';

/** The project's settings, which operators change, and the sessions that the caller may end. */
export function ProjectPage() {
  const { scope } = useScope();
  const may = useMay();
  const project = useQuery(ProjectService.method.getProject, { id: scope.projectId });
  const isOperator = may(ProjectService.method.updateProject);
  const isAdmin = may(SessionService.method.revokeSessions);
  return (
    <>
      <PageHead title="Project" hint={<code>{scope.projectId}</code>} />
      {project.isPending ? <Loading what="the project" /> : null}
      {project.error === null ? null : <ErrorState error={project.error} onRetry={project.refetch} />}
      {project.data === undefined ? null : isOperator ? (
        <div class="cards">
          <ProjectSettings key={project.data.id} project={project.data} />
          <SignInLinks projectId={project.data.id} />
        </div>
      ) : (
        <Facts project={project.data} />
      )}
      <Sessions title={isAdmin ? 'Sessions of the project' : 'Your sessions'} projectId={scope.projectId} />
      {isOperator ? <Sessions title="The operator’s sessions" /> : null}
    </>
  );
}

function Facts({ project: { name, createdAt, publicLookup } }: { project: Project }) {
  return (
    <section class="card" aria-labelledby="settings">
      <h2 id="settings">Settings</h2>
      <dl>
        <dt>Name</dt>
        <dd>{safe(name)}</dd>
        <dt>Created</dt>
        <dd>
          <Time at={createdAt} />
        </dd>
        <dt>Public look-up</dt>
        <dd>{LOOKUPS.find(([key]) => key === String(publicLookup))?.[1]}</dd>
      </dl>
      <p class="hint">The operator of the service changes these.</p>
    </section>
  );
}
