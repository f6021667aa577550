import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import {
  ListProjectsRequestSchema,
  ListProjectsResponseSchema,
  type Project,
  ProjectSchema,
  type ProjectService,
} from '../../../gen/attestation/admin/v1/projects_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import type { Handlers } from '../../call.js';
import { ApiError } from '../../errors.js';
import type { RandomSource } from '../../random.js';
import { insertAuditEntry } from '../../store/audit.js';
import type { Pool, Sql } from '../../store/connect.js';
import {
  findProject,
  insertProject,
  listProjects,
  lockProject,
  type ProjectRow,
  renameProject,
} from '../../store/projects.js';
import { auditEntry } from '../audit-entry.js';
import type { Cursors } from '../cursor.js';
import { defaultLimit } from '../default-limit.js';
import { type Idempotency, idempotently } from '../idempotent.js';

/** What the handlers work with. */
export type ProjectDeps = {
  pool: Pool;
  idempotency: Idempotency;
  cursors: Cursors;
  clock: () => number;
  random: RandomSource;
};

const DEFAULT_LIMIT = defaultLimit(ListProjectsRequestSchema);
const CURSOR_OF = ['projects'];

/** The handlers of ProjectService. */
export function projectHandlers(deps: ProjectDeps): Handlers<typeof ProjectService> {
  const { pool, idempotency, cursors, clock, random } = deps;
  const show = async (sql: Sql, id: string) => projectMessage(await getProject(sql, id));
  return {
    createProject: (request, call) =>
      idempotently(idempotency, call, request, {
        effect: async (tx) => {
          const resourceId = `prj_${random.ulid(clock())}`;
          const { name } = request;
          await insertProject(tx, { id: resourceId, name });
          const action = AuditAction.PROJECT_CREATED;
          const done = { action, projectId: resourceId, resourceId, detail: { name } };
          await insertAuditEntry(tx, auditEntry(deps, call, done));
          return { resourceId, response: await show(tx, resourceId) };
        },
        replay: (id) => show(pool, id),
      }),
    getProject: ({ id }) => show(pool, id),
    listProjects: async ({ limit = DEFAULT_LIMIT, cursor }) => {
      const [before] = cursors.openTexts(cursor, CURSOR_OF) ?? [];
      const rows = await listProjects(pool, { before, limit: limit + 1 });
      const last = rows.length > limit ? rows[limit - 1] : undefined;
      return create(ListProjectsResponseSchema, {
        data: rows.slice(0, limit).map(projectMessage),
        nextCursor: last === undefined ? '' : cursors.seal([last.id], CURSOR_OF),
      });
    },
    updateProject: (request, call) =>
      idempotently(idempotency, call, request, {
        effect: async (tx) => {
          const { id, name } = await getLockedProject(tx, request.id);
          if (request.name !== undefined && request.name !== name) {
            await renameProject(tx, id, request.name);
            const detail = { name: { from: name, to: request.name } };
            const done = { action: AuditAction.PROJECT_CHANGED, projectId: id, resourceId: id, detail };
            await insertAuditEntry(tx, auditEntry(deps, call, done));
          }
          return { resourceId: id, response: await show(tx, id) };
        },
        replay: (id) => show(pool, id),
      }),
  };
}

/** The project; throws `project.not_found`. */
export async function getProject(sql: Sql, id: string): Promise<ProjectRow> {
  const row = await findProject(sql, id);
  if (row === undefined) throw new ApiError(ErrorCode.PROJECT_NOT_FOUND, 'there is no project with this id');
  return row;
}

async function getLockedProject(tx: Sql, id: string): Promise<ProjectRow> {
  await lockProject(tx, id);
  return getProject(tx, id);
}

function projectMessage({ id, name, createdAt }: ProjectRow): Project {
  return create(ProjectSchema, { id, name, createdAt: timestampFromDate(createdAt) });
}
