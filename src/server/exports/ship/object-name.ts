import { ExportCompression } from '../../../../gen/attestation/v1/exports_pb.js';
import { environmentName } from '../../../protocol/environment.js';

/** The members of an export that its objects' names follow from. Enumerations are proto numbers. */
type NamedExport = { id: string; environment: number; compression: number; destination: { prefix?: string } };

const MANIFEST = 'manifest.json';

/** The name of a batch's object: `<prefix>/<export id>/<environment>/<yyyy>/<mm>/<dd>/<batch id>.jsonl`. */
export function objectName(row: NamedExport, { day, batchId }: { day: string; batchId: string }): string {
  return `${dayFolder(row, day)}/${batchFileName(row, batchId)}`;
}

/** The last part of the name of a batch's object. */
export function batchFileName({ compression }: Pick<NamedExport, 'compression'>, batchId: string): string {
  return `${batchId}.jsonl${compression === ExportCompression.GZIP ? '.gz' : ''}`;
}

/** The name of a day's manifest. @param day `2026-01-02` */
export function manifestName(row: NamedExport, day: string): string {
  return `${dayFolder(row, day)}/${MANIFEST}`;
}

function dayFolder({ id, environment, destination: { prefix } }: NamedExport, day: string): string {
  const folder = `${id}/${environmentName(environment)}/${day.replaceAll('-', '/')}`;
  return prefix === undefined || prefix === '' ? folder : `${prefix}/${folder}`;
}
