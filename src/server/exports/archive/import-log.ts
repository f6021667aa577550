/**
 * Puts an archived log that has ended into another database of the installation. Everything that is read is checked: the
 * signature of the record, by it the manifests and by them the objects; each leaf's hash, from what was signed; the root and
 * the checkpoint of each batch; and the newest checkpoint in the register. One transaction: a reader sees all of it or
 * nothing, and an import that ends early leaves nothing.
 */
import { createHash } from 'node:crypto';
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { verifyEcdsaP256Sha256 } from '../../../proof/bytes/primitives.js';
import type { ManifestFields } from '../../../proof/export/manifest-fields.js';
import { MAX_MANIFEST_BYTES, readManifest } from '../../../proof/export/read-manifest.js';
import { emptyRoot } from '../../../proof/log/merkle.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../proof/statement/dsse.js';
import type { EnvironmentName } from '../../../protocol/environment.js';
import { environmentName } from '../../../protocol/environment.js';
import { insertOperatorEntry } from '../../admin/store/audit.js';
import type { Pool, Sql } from '../../database/connect.js';
import { compareWithRegister, type Register } from '../../log/register/register.js';
import { listDsseKeys } from '../../log/store/dsse-keys.js';
import type { OperatorStore } from '../destinations/operator-store.js';
import { ArchiveError } from './archive-error.js';
import { archiveFolder, logRecordName } from './archive-names.js';
import { addCompanions, takeLogRow } from './import-log-row.js';
import { type Importing, importObject } from './import-object.js';
import { insertWitnessStates } from './import-rows.js';
import { type ArchivedDay, type LogRecord, parseLogRecord } from './log-record.js';
import { readPieces, readWhole } from './stored-objects.js';

/** What importing needs. */
export type ImportDeps = {
  pool: Pool;
  register: Register;
  storage: OperatorStore;
  signal: AbortSignal;
  onStart: (leaves: number) => void;
  onLeaves: (leaves: number) => void;
};

/** What was imported. */
export type Imported = { origin: string; leaves: number; projects: number; newProjects: number };

/** Imports the archived log of an origin and environment. Throws ArchiveError, and leaves the tables as they were. */
export async function importLog(
  deps: ImportDeps,
  named: { origin: string; environment: number },
): Promise<Imported> {
  const record = await readRecord(deps, named);
  deps.onStart(record.treeSize);
  return deps.pool.begin(async (tx) => {
    await tx`SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true)`;
    const [{ before } = { before: 0 }] = await countProjects(tx, record);
    const log = await takeLogRow(tx, record);
    const importing: Importing = {
      ...deps,
      tx,
      log,
      policies: await addCompanions(tx, record),
      rowsOf: {
        environment: record.environment,
        projects: new Set(record.projects.map(({ id }) => id)),
        dsseKeys: new Set(record.dsseKeys.map(({ spki }) => spki)),
      },
      tree: { size: 0, tiles: [], rootHash: emptyRoot() },
    };
    let previous = '';
    for (const day of record.days) {
      if (day.name <= previous) throw new ArchiveError('the days of log.json are not in order');
      previous = day.name;
      await importDay(importing, record, day);
    }
    if (importing.tree.size !== record.treeSize)
      throw new ArchiveError(
        `the archive has ${importing.tree.size} leaves, and the log had ${record.treeSize}`,
      );
    await insertWitnessStates(tx, log.id, record.treeSize);
    await assertRegistered(tx, deps.register, importing);
    const { treeSize: leaves, projects } = record;
    const counts = { leaves, projects: projects.length, newProjects: projects.length - before };
    const detail = { leaves, projects: counts.projects, new_projects: counts.newProjects };
    await insertOperatorEntry(tx, AuditAction.LOG_IMPORTED, log.origin, detail);
    return { origin: log.origin, ...counts };
  });
}

const countProjects = (tx: Sql, { projects }: LogRecord) => tx<{ before: number }[]>`
  SELECT count(*)::integer AS before FROM project WHERE id = ANY(${projects.map(({ id }) => id)})`;

/** Reads the record. Throws ArchiveError unless a DSSE key that the database trusts has signed it. */
async function readRecord(
  { pool, storage, signal }: ImportDeps,
  named: { origin: string; environment: number },
): Promise<LogRecord> {
  const name = logRecordName(named);
  const place = storage.location(name);
  const found = await readWhole(storage, name, signal);
  if (found === undefined)
    throw new ArchiveError(
      `${place} is not there: only a log that has ended and is archived whole can be imported`,
    );
  const { record, statement, signature } = readChecked(place, () => parseLogRecord(found.bytes));
  if (record.origin !== named.origin || record.environment !== named.environment)
    throw new ArchiveError(`${place} is of another log`);
  const pae = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, statement);
  for (const { environment, spki, validTo } of await listDsseKeys(pool)) {
    if (environment !== record.environment || validTo !== null) continue;
    if (await verifyEcdsaP256Sha256(spki, pae, signature)) return record;
  }
  throw new ArchiveError(
    `${place} is not signed by a DSSE key that the database trusts: it is of another installation`,
  );
}

function readChecked<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw new ArchiveError(`${place}: ${error.message}`);
  }
}

async function importDay(importing: Importing, record: LogRecord, day: ArchivedDay): Promise<void> {
  const folder = `${archiveFolder(record)}/${day.name.slice(0, 'yyyy/mm/dd'.length)}`;
  const fields = await readDay(importing, record, day);
  for (const object of fields.objects) {
    if (object.firstIndex !== importing.tree.size)
      throw new ArchiveError(`the archive lacks leaves ${importing.tree.size} to ${object.firstIndex - 1}`);
    await importObject(importing, folder, object);
  }
}

/** Reads a manifest that the record names by its hash. */
async function readDay(
  { storage, signal }: Pick<Importing, 'storage' | 'signal'>,
  record: LogRecord,
  { name, sha256 }: ArchivedDay,
): Promise<ManifestFields> {
  const path = `${archiveFolder(record)}/${name}`;
  const pieces: Uint8Array[] = [];
  for await (const piece of readPieces(storage, path, MAX_MANIFEST_BYTES, signal)) pieces.push(piece);
  const bytes = Buffer.concat(pieces);
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    throw new ArchiveError(
      `${storage.location(path)} is not the one that log.json names: archive again, or take the newest copy`,
    );
  const { fields } = readChecked(storage.location(path), () => readManifest(bytes));
  const environment: EnvironmentName = environmentName(record.environment);
  const isOfLog =
    fields.project === null && fields.exportId === record.origin && fields.environment === environment;
  if (!isOfLog) throw new ArchiveError(`${storage.location(path)} is of another log`);
  return fields;
}

/** Throws ArchiveError unless the register's newest checkpoint of the log is the last of the archive. */
async function assertRegistered(tx: Sql, register: Register, { log, tree }: Importing): Promise<void> {
  const comparison = await compareWithRegister(tx, register, log);
  if (comparison.state === 'consistent' && comparison.entry?.size === tree.size) return;
  const reason =
    'reason' in comparison
      ? comparison.reason
      : `the register has a checkpoint of size ${comparison.entry?.size ?? 0}, and the archive ends at ${tree.size}`;
  throw new ArchiveError(`the archive contradicts the checkpoint register: ${reason}`);
}
