import { create, type JsonObject } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import {
  ListProjectsRequestSchema,
  ListProjectsResponseSchema,
  type Project,
  ProjectSchema,
  type ProjectService,
  PublicLookup,
  PublicLookupSchema,
} from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import type { Pool, Sql } from '../../store/database/connect.js';
import {
  findProject,
  insertProject,
  listProjects,
  lockProject,
  type ProjectRow,
  updateProject,
} from '../../store/projects/projects.js';
import { recordAction } from '../audit-log.js';
import type { Cursors } from '../cursor.js';
import { changeOnce, type Idempotency } from '../idempotency.js';
import { pageReader } from '../list-page.js';

type ProjectDeps = {
  pool: Pool;
  idempotency: Idempotency;
  cursors: Cursors;
  clock: () => number;
  random: RandomSource;
};

const readPage = pageReader(ListProjectsRequestSchema);

/** The handlers of ProjectService. */
export function projectHandlers(deps: ProjectDeps): Handlers<typeof ProjectService> {
  const { pool, idempotency, cursors, clock, random } = deps;
  const show = async (sql: Sql, id: string) => projectMessage(await getProject(sql, id));
  return {
    createProject: (request, call) =>
      changeOnce(idempotency, call, request, {
        make: async (tx) => {
          const resourceId = `prj_${random.ulid(clock())}`;
          const { name } = request;
          await insertProject(tx, { id: resourceId, name });
          const action = AuditAction.PROJECT_CREATED;
          await recordAction(deps, tx, call, { action, projectId: resourceId, resourceId, detail: { name } });
          return resourceId;
        },
        show,
      }),
    getProject: ({ id }) => show(pool, id),
    listProjects: async (request) => {
      const { rows, nextCursor } = await readPage(cursors, request, {
        query: ['projects'],
        read: (before, limit) => listProjects(pool, { before: before?.[0], limit }),
        positionOf: ({ id }) => [id],
      });
      return create(ListProjectsResponseSchema, { data: rows.map(projectMessage), nextCursor });
    },
    updateProject: (request, call) =>
      changeOnce(idempotency, call, request, {
        make: async (tx) => {
          const before = await getLockedProject(tx, request.id);
          const { id } = before;
          const name = request.name ?? before.name;
          const publicLookup =
            request.publicLookup === PublicLookup.UNSPECIFIED
              ? before.publicLookup
              : lookupColumn(request.publicLookup);
          const detail = changes(before, { name, publicLookup });
          if (Object.keys(detail).length > 0) {
            await updateProject(tx, { id, name, publicLookup });
            const action = AuditAction.PROJECT_CHANGED;
            await recordAction(deps, tx, call, { action, projectId: id, resourceId: id, detail });
          }
          return id;
        },
        show,
      }),
  };
}

/** Reads a project. Throws `project.not_found`. */
export async function getProject(sql: Sql, id: string): Promise<ProjectRow> {
  const row = await findProject(sql, id);
  if (row === undefined) throw new ApiError(ErrorCode.PROJECT_NOT_FOUND, 'there is no project with this id');
  return row;
}

async function getLockedProject(tx: Sql, id: string): Promise<ProjectRow> {
  await lockProject(tx, id);
  return getProject(tx, id);
}

type Settings = Pick<ProjectRow, 'name' | 'publicLookup'>;

/** The changes, as the audit log shows them. */
function changes(before: Settings, after: Settings): JsonObject {
  const lookup = ({ publicLookup }: Settings) => enumName(PublicLookupSchema, lookupValue(publicLookup));
  return {
    ...(before.name !== after.name && { name: { from: before.name, to: after.name } }),
    ...(before.publicLookup !== after.publicLookup && {
      public_lookup: { from: lookup(before), to: lookup(after) },
    }),
  };
}

function lookupColumn(value: PublicLookup): boolean | null {
  return value === PublicLookup.DEFAULT ? null : value === PublicLookup.ON;
}

function lookupValue(column: boolean | null): PublicLookup {
  if (column === null) return PublicLookup.DEFAULT;
  return column ? PublicLookup.ON : PublicLookup.OFF;
}

function projectMessage({ id, name, createdAt, publicLookup }: ProjectRow): Project {
  return create(ProjectSchema, {
    id,
    name,
    createdAt: timestampFromDate(createdAt),
    publicLookup: lookupValue(publicLookup),
  });
}
