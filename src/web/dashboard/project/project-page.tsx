import { useQuery } from '@connectrpc/connect-query';
import { type Project, ProjectService } from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { useScope } from '../scope.js';
import { PageHead } from '../ui/page-head.js';
import { safe } from '../ui/safe.js';
import { ErrorState, Loading } from '../ui/states.js';
import { Time } from '../ui/time.js';
import { LOOKUPS } from './lookups.js';
import { ProjectSettings } from './project-settings.js';
import { Sessions } from './sessions.js';
import { SignInLinks } from './sign-in-links.js';

/** The project's settings. Operators change them, its own sessions read them. */
export function ProjectPage() {
  const { scope, session } = useScope();
  const project = useQuery(ProjectService.method.getProject, { id: scope.projectId });
  const isOperator = session.role === Role.OPERATOR;
  return (
    <>
      <PageHead title="Project" hint={<code>{scope.projectId}</code>} />
      {project.isPending ? <Loading what="the project" /> : null}
      {project.error === null ? null : <ErrorState error={project.error} onRetry={project.refetch} />}
      {project.data === undefined ? null : isOperator ? (
        <>
          <div class="cards">
            <ProjectSettings key={project.data.id} project={project.data} />
            <SignInLinks projectId={project.data.id} />
          </div>
          <Sessions title="Sessions of the project" projectId={project.data.id} />
          <Sessions title="The operator’s sessions" />
        </>
      ) : (
        <Facts project={project.data} />
      )}
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
