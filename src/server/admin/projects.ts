import { create, type JsonObject } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import {
  ListProjectsRequestSchema,
  ListProjectsResponseSchema,
  type Project,
  ProjectSchema,
  type ProjectService,
  PublicLookup,
  PublicLookupSchema,
  type UpdateProjectRequest,
} from '../../../gen/attestation/admin/v1/projects_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import type { Handlers } from '../core/call.js';
import { ApiError } from '../core/errors.js';
import type { RandomSource } from '../core/random.js';
import type { Pool, Sql } from '../database/connect.js';
import { changeOnce, type Idempotency } from '../idempotency/idempotency.js';
import type { Cursors } from '../rpc/cursor.js';
import { pageReader } from '../rpc/list-page.js';
import { recordAction } from './audit-log.js';
import {
  findProject,
  insertProject,
  listProjects,
  lockProject,
  type ProjectLimits,
  type ProjectRow,
  updateProject,
} from './store/projects.js';

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
          const after = updatedColumns(before, request);
          const detail = changes(before, after);
          if (Object.keys(detail).length > 0) {
            await updateProject(tx, after);
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

/** The project's columns after the update: the request's values, and the present ones for fields it leaves out. */
function updatedColumns(before: ProjectRow, request: UpdateProjectRequest): ProjectRow {
  const { name, publicLookup, limits, defaultLimits } = request;
  const limitOf = (limit: keyof ProjectLimits) => {
    const set = limits?.[limit];
    return set === undefined ? (defaultLimits ? null : before[limit]) : Number(set);
  };
  return {
    ...before,
    name: name ?? before.name,
    publicLookup:
      publicLookup === PublicLookup.UNSPECIFIED ? before.publicLookup : lookupColumn(publicLookup),
    submissionsPerSecond: limitOf('submissionsPerSecond'),
    submissionsPerHour: limitOf('submissionsPerHour'),
    submissionsPerDay: limitOf('submissionsPerDay'),
    readsPerSecond: limitOf('readsPerSecond'),
  };
}

/** The limits by their names in the audit log. */
const LIMITS: readonly (readonly [string, keyof ProjectLimits])[] = [
  ['submissions_per_second', 'submissionsPerSecond'],
  ['submissions_per_hour', 'submissionsPerHour'],
  ['submissions_per_day', 'submissionsPerDay'],
  ['reads_per_second', 'readsPerSecond'],
];

/** The changes, as the audit log shows them; a limit of null is the default. */
function changes(before: ProjectRow, after: ProjectRow): JsonObject {
  const lookup = ({ publicLookup }: ProjectRow) => enumName(PublicLookupSchema, lookupValue(publicLookup));
  const limits = LIMITS.filter(([, limit]) => before[limit] !== after[limit]).map(
    ([name, limit]) => [name, { from: before[limit], to: after[limit] }] as const,
  );
  return {
    ...Object.fromEntries(limits),
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

function projectMessage({ id, name, createdAt, publicLookup, ...row }: ProjectRow): Project {
  const limits = LIMITS.flatMap(([, limit]) => {
    const set = row[limit];
    return set === null ? [] : [[limit, BigInt(set)]];
  });
  return create(ProjectSchema, {
    id,
    name,
    createdAt: timestampFromDate(createdAt),
    publicLookup: lookupValue(publicLookup),
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
  });
}
