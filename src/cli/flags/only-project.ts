import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import type { AdminCall } from '../../client/admin.js';

/** The id of the only project. Throws Error if there are several, or none. */
export async function findOnlyProject(call: AdminCall): Promise<string> {
  const { data } = await call(ProjectService.method.listProjects, { limit: 2 });
  const [only, other] = data;
  if (only === undefined) throw new Error('there is no project: create one with `attest projects create`');
  if (other !== undefined) throw new Error('there are several projects: choose one with --project');
  return only.id;
}
