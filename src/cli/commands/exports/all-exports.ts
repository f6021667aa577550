/** `attest exports list --all-projects`, for operators. */
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  type ProjectExport,
  ProjectExportSchema,
  ProjectExportService,
} from '../../../../gen/attestation/admin/v1/exports_pb.js';
import { DestinationKindSchema, ExportStatusSchema } from '../../../../gen/attestation/v1/exports_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print } from '../../cli.js';
import { type AdminFlags, collectPages, printJsonList, withAdminApi } from '../../flags/admin-flags.js';
import { formatTable } from '../../output/table.js';

const { listProjectExports } = ProjectExportService.method;

/** Lists the exports of all projects by the admin API, or those whose last attempt failed. */
export async function listAllExports(
  cli: Cli,
  { url, dataDir, json }: AdminFlags,
  { onlyFailed }: { onlyFailed: boolean },
): Promise<void> {
  const flags = { ...(url === undefined ? {} : { url }), ...(dataDir === undefined ? {} : { dataDir }) };
  await withAdminApi(cli, flags, async (call) => {
    const all = await collectPages((page) => call(listProjectExports, { ...page, onlyFailed }));
    if (json) printJsonList(cli, ProjectExportSchema, all);
    else print(cli, all.length === 0 ? 'no exports' : tableOf(all));
  });
}

function tableOf(exports: readonly ProjectExport[]): string {
  const rows = exports.map((one) => [
    one.projectId,
    one.id,
    enumName(ExportStatusSchema, one.status),
    printable(`${enumName(DestinationKindSchema, one.kind)} ${one.place}`),
    one.lagBatches === 0 ? 'up to date' : `${one.lagBatches}, ${one.lagSeconds} s`,
    String(one.consecutiveFailures),
    one.failingSince === undefined ? '' : timestampDate(one.failingSince).toISOString(),
    printable(one.lastError ?? ''),
  ]);
  const head = ['PROJECT', 'ID', 'STATUS', 'DESTINATION', 'LAG', 'FAILURES', 'SINCE', 'LAST ERROR'];
  return formatTable([head, ...rows]);
}
