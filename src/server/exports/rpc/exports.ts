import { create, type JsonObject } from '@bufbuild/protobuf';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import {
  type CreateExportRequest,
  CreateExportRequestSchema,
  DestinationKindSchema,
  type Export,
  type ExportDestination,
  type ExportService,
  ExportStatus,
  type ListExportsRequest,
  ListExportsRequestSchema,
  ListExportsResponseSchema,
  type TestExportRequest,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { type AuditIds, recordAction } from '../../admin/audit-log.js';
import { type Call, getPrincipal, type Handlers } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Pool, Sql } from '../../database/connect.js';
import { changeOnce, type Idempotency } from '../../idempotency/idempotency.js';
import { changeOnceAfter } from '../../idempotency/leased-idempotency.js';
import { shipJob } from '../../jobs/job.js';
import type { SendJob } from '../../jobs/send-after.js';
import { defaultsOf } from '../../json/defaults.js';
import { invalidRequest } from '../../json/problems.js';
import { encryptSecret } from '../../keys/encryption.js';
import type { KeyRing } from '../../keys/key-ring.js';
import { findProjectBatch } from '../../log/store/batches.js';
import type { Cursors } from '../../rpc/cursor.js';
import { pageReader } from '../../rpc/list-page.js';
import type { SchemaRegistry } from '../../schema/registry.js';
import { readStoredDestination } from '../destinations/stored-destination.js';
import { retryExportNow } from '../store/export-leases.js';
import { readExportProgress } from '../store/export-status.js';
import {
  type ExportRow,
  findExport,
  insertExport,
  listExports,
  mayAddExport,
  stopExport,
} from '../store/exports.js';
import { listBatchObjects, listDeliveredObjects } from '../store/shipments.js';
import { assertMembersOfKind, splitSecrets, trimPrefix } from './destination-input.js';
import { exportMessage } from './export-messages.js';
import { type ProbeDeps, probeDestination } from './probe.js';

/** Dependencies of the handlers of ExportService. */
type ExportDeps = AuditIds & {
  pool: Pool;
  idempotency: Idempotency;
  cursors: Cursors;
  schemas: SchemaRegistry;
  /** Sub-keys that encrypt credentials. */
  encryptionKeys: KeyRing;
  probe: ProbeDeps;
  send: SendJob;
};

const MAX_EXPORTS = 50;
const SHOWN_DELIVERIES = 50;
const DEFAULTS = defaultsOf(CreateExportRequestSchema);
const readPage = pageReader(ListExportsRequestSchema);

/** The handlers of ExportService. */
export function exportHandlers(deps: ExportDeps): Handlers<typeof ExportService> {
  return {
    createExport: (request, call) => thenShip(deps, createExport(deps, request, call), call),
    getExport: ({ id }, call) => showExport(deps.pool, id, call),
    listExports: (request, call) => listCallers(deps, request, call),
    testExport: (request, call) => thenShip(deps, testExport(deps, request, call), call),
    deleteExport: (request, call) =>
      changeOnce(deps.idempotency, call, request, {
        make: async (tx) => {
          const { id } = await getExport(tx, request.id, call, { isLocked: true });
          if (await stopExport(tx, id))
            await recordAction(deps, tx, call, { action: AuditAction.EXPORT_STOPPED, resourceId: id });
          return id;
        },
        show: (sql, id) => showExport(sql, id, call),
      }),
  };
}

/** Publishes the job of the export that a change has made due. */
async function thenShip({ send }: ExportDeps, change: Promise<Export>, call: Call): Promise<Export> {
  const due = await change;
  send(shipJob({ id: due.id, projectId: getPrincipal(call).projectId }));
  return due;
}

/** Probes the destination outside of any transaction, then stores the export. */
async function createExport(deps: ExportDeps, request: CreateExportRequest, call: Call): Promise<Export> {
  const { projectId, environment } = getPrincipal(call);
  const { destination } = request;
  const schema = request.filter?.schema || null;
  if (destination === undefined) throw new Error('the request was not validated');
  assertMembersOfKind(destination);
  trimPrefix(destination);
  const id = `exp_${deps.random.ulid(deps.clock())}`;
  const { members, secrets } = splitSecrets(destination);
  const { idempotency, probe, encryptionKeys } = deps;
  return changeOnceAfter(idempotency, call, request, {
    prepare: async () => {
      assertSchema(deps.schemas, schema);
      if (!(await mayAddExport(deps.pool, { projectId, environment }, MAX_EXPORTS))) throw limitReached();
      await probeDestination(probe, call, { exportId: id, projectId, read: () => destination });
    },
    make: async (tx) => {
      const made = {
        id,
        projectId,
        environment,
        destination: members,
        secrets: encryptSecret(encryptionKeys, JSON.stringify(secrets), id),
        schema,
        compression: request.compression || DEFAULTS.compression,
        start: request.start || DEFAULTS.start,
      };
      if (!(await insertExport(tx, made, MAX_EXPORTS))) throw limitReached();
      const detail: JsonObject = {
        kind: enumName(DestinationKindSchema, destination.kind),
        ...placeOf(destination),
      };
      await recordAction(deps, tx, call, { action: AuditAction.EXPORT_CREATED, resourceId: id, detail });
      return id;
    },
    show: (sql, made) => showExport(sql, made, call),
  });
}

/** Refuses a filter that no submission can match: each names one of these schemas. */
function assertSchema(schemas: SchemaRegistry, schema: string | null): void {
  if (schema === null || schemas.has(schema)) return;
  const message = `is no metadata schema of the service, which are ${[...schemas.keys()].join(', ')}`;
  throw invalidRequest([{ path: '/filter/schema', message }]);
}

/** Where a destination is, for the audit log. */
function placeOf({ bucket, endpoint, accountUrl, container, url }: ExportDestination): JsonObject {
  const place = { bucket, endpoint, account_url: accountUrl, container, url };
  return Object.fromEntries(
    Object.entries(place).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

/** Probes the stored destination. If attempts have failed, the next one is made at once. */
async function testExport(deps: ExportDeps, request: TestExportRequest, call: Call): Promise<Export> {
  const { id } = request;
  return changeOnceAfter(deps.idempotency, call, request, {
    prepare: async () => {
      const row = await getExport(deps.pool, id, call);
      if (row.status === ExportStatus.STOPPED) throw stopped();
      const read = () => readStoredDestination(deps.encryptionKeys, row);
      await probeDestination(deps.probe, call, { exportId: id, projectId: row.projectId, read });
    },
    make: async (tx) => {
      await retryExportNow(tx, id);
      return id;
    },
    show: (sql) => showExport(sql, id, call),
  });
}

async function listCallers(deps: ExportDeps, request: ListExportsRequest, call: Call) {
  const { pool } = deps;
  const { batchId } = request;
  const { projectId, environment } = getPrincipal(call);
  const batch = batchId === '' ? undefined : await findProjectBatch(pool, projectId, environment, batchId);
  if (batch === undefined && batchId !== '') return create(ListExportsResponseSchema);
  const { rows, nextCursor } = await readPage(deps.cursors, request, {
    query: ['exports', projectId, environment, batchId],
    read: (position, limit) => {
      const before = position && Number(position[0]);
      return listExports(pool, { projectId, environment }, { batch, before, limit });
    },
    positionOf: ({ number }) => [number],
  });
  const ids = rows.map(({ id }) => id);
  const progress = new Map((await readExportProgress(pool, ids)).map((one) => [one.exportId, one]));
  const objects = batch === undefined ? [] : await listBatchObjects(pool, ids, batch);
  const objectsOf = (id: string) => objects.filter(({ exportId }) => exportId === id);
  return create(ListExportsResponseSchema, {
    data: rows.map((row) => exportMessage(row, progress.get(row.id), objectsOf(row.id))),
    nextCursor,
  });
}

async function showExport(sql: Sql, id: string, call: Call): Promise<Export> {
  const row = await getExport(sql, id, call);
  const [progress] = await readExportProgress(sql, [id]);
  return exportMessage(row, progress, await listDeliveredObjects(sql, id, SHOWN_DELIVERIES));
}

/** Reads an export of the caller. Throws `export.not_found` if it is unknown or another project's. */
async function getExport(
  sql: Sql,
  id: string,
  call: Call,
  options: { isLocked?: boolean } = {},
): Promise<ExportRow> {
  const row = await findExport(sql, getPrincipal(call), id, options);
  if (row !== undefined) return row;
  const message = "the project has no export with this id in the API key's environment";
  throw new ApiError(ErrorCode.EXPORT_NOT_FOUND, message);
}

function stopped(): ApiError {
  return new ApiError(
    ErrorCode.EXPORT_INVALID_DESTINATION,
    'the export is stopped: its credentials are erased',
  );
}

function limitReached(): ApiError {
  return new ApiError(
    ErrorCode.EXPORT_LIMIT_REACHED,
    `the project has ${MAX_EXPORTS} exports in this environment; delete one first`,
  );
}
