import { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import type { Sql } from '../../database/connect.js';
import { invalidRequest } from '../../json/problems.js';
import { getProject } from '../projects.js';

/** Of what a role is: the id of a project that exists, or null for the installation. Throws `project.not_found`. */
export async function projectOfRole(sql: Sql, projectId: string): Promise<string | null> {
  return projectId === '' ? null : (await getProject(sql, projectId)).id;
}

/** Throws `request.invalid` unless the role is `operator` of no project, or another one of a project. */
export function assertRoleFits(role: Role, projectId: string): void {
  if ((role === Role.OPERATOR) === (projectId === '')) return;
  const message =
    projectId === ''
      ? 'must be operator where no project is named'
      : 'must be viewer, member or admin: an operator is one of every project, so name none';
  throw invalidRequest([{ path: '/role', message }]);
}
