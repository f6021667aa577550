import { create, fromJson } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  ListProjectExportsRequestSchema,
  ListProjectExportsResponseSchema,
  type ProjectExport,
  ProjectExportSchema,
  type ProjectExportService,
} from '../../../../gen/attestation/admin/v1/exports_pb.js';
import {
  type ExportDestination,
  ExportDestinationSchema,
} from '../../../../gen/attestation/v1/exports_pb.js';
import type { Handlers } from '../../core/call.js';
import type { Pool } from '../../database/connect.js';
import type { Cursors } from '../../rpc/cursor.js';
import { pageReader } from '../../rpc/list-page.js';
import { type ExportProgress, readExportProgress } from '../store/export-status.js';
import { type ExportRow, listAllExports } from '../store/exports.js';

const readPage = pageReader(ListProjectExportsRequestSchema);

/** The handlers of ProjectExportService. */
export function projectExportHandlers({
  pool,
  cursors,
}: {
  pool: Pool;
  cursors: Cursors;
}): Handlers<typeof ProjectExportService> {
  return {
    listProjectExports: async (request) => {
      const { status, onlyFailed } = request;
      const { rows, nextCursor } = await readPage(cursors, request, {
        query: ['all exports', status, onlyFailed],
        read: (position, limit) => {
          const before = position && Number(position[0]);
          return listAllExports(pool, { status, onlyFailed }, { before, limit });
        },
        positionOf: ({ number }) => [number],
      });
      const progress = await readExportProgress(
        pool,
        rows.map(({ id }) => id),
      );
      const byId = new Map(progress.map((one) => [one.exportId, one]));
      return create(ListProjectExportsResponseSchema, {
        data: rows.map((row) => exportMessage(row, byId.get(row.id))),
        nextCursor,
      });
    },
  };
}

function exportMessage(row: ExportRow, progress: ExportProgress | undefined): ProjectExport {
  const destination = fromJson(ExportDestinationSchema, row.destination);
  return create(ProjectExportSchema, {
    projectId: row.projectId,
    id: row.id,
    environment: row.environment,
    kind: destination.kind,
    place: placeOf(destination),
    status: row.status,
    lagBatches: progress?.lagBatches ?? 0,
    lagSeconds: BigInt(Math.max(0, Math.floor(progress?.lagSeconds ?? 0))),
    consecutiveFailures: row.failures,
    ...(row.failingSince === null ? {} : { failingSince: timestampFromDate(row.failingSince) }),
    ...(row.lastError === null ? {} : { lastError: row.lastError }),
    ...(row.failures === 0 || row.dueAt === null ? {} : { nextAttemptAt: timestampFromDate(row.dueAt) }),
    createdAt: timestampFromDate(row.createdAt),
  });
}

/** The bucket, container or repository, after its host where the destination names one. */
function placeOf({ bucket, endpoint, accountUrl, container, url }: ExportDestination): string {
  const target = url ?? endpoint ?? accountUrl;
  const address = target !== undefined && URL.canParse(target) ? new URL(target) : undefined;
  if (url !== undefined) return `${address?.host ?? ''}${address?.pathname ?? ''}`;
  return [address?.host, bucket ?? container].filter((part) => part !== undefined).join('/');
}
