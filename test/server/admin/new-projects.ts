/** Projects and keys that tests of the admin API create by it. */
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { Admin } from '../../support/calling/admin.js';

/** Creates a project. @returns its id */
export async function newProject(admin: Admin, name = 'a project'): Promise<string> {
  return String((await admin.ask(ProjectService.method.createProject, { name })).id);
}

/** Creates a live key of a project. */
export async function newKeyOf(admin: Admin, projectId: string): Promise<{ id: string; secret: string }> {
  const request = { projectId, environment: Environment.LIVE, name: 'a key' };
  const key = await admin.ask(ApiKeyService.method.createApiKey, request);
  return { id: String(key.id), secret: String(key.secret) };
}
