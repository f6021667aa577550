/**
 * Removes submissions from the tables that an archive has. Each batch's object is read and compared with the rows, line by
 * line; then, in a transaction of its own, the rows are locked, found unchanged, and removed, with the log's `archived_size`. A
 * run that ends early is continued by the next one. Partitions that are empty then are dropped.
 */
import { AuditAction } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import type { ManifestObject } from '../../../proof/export/manifest-fields.js';
import { TILE_WIDTH } from '../../../proof/log/tile-path.js';
import { insertOperatorEntry } from '../../admin/store/audit.js';
import { insertArchivedObject, type OwnedIds } from '../../attestations/archived/archived-objects.js';
import type { Pool, Sql } from '../../database/connect.js';
import type { Log } from '../../log/store/logs.js';
import { dropEmptied } from '../../log/store/partitions.js';
import type { OperatorStore } from '../destinations/operator-store.js';
import { ArchiveError } from './archive-error.js';
import { dayFolder, dayManifestName } from './archive-names.js';
import { type ArchivableBatch, listArchivableBatches, listArchivedRows } from './archived-rows.js';
import { assertReleased } from './drop-checks.js';
import { findLog } from './find-log.js';
import { readObjectLines } from './stored-lines.js';
import { findManifest } from './stored-objects.js';

/** What removing needs. */
export type DropDeps = {
  pool: Pool;
  storage: OperatorStore;
  signal: AbortSignal;
  onStart: (leaves: number) => void;
  onLeaves: (leaves: number) => void;
};

/** What was removed: the log has rows from leaf `end` on. */
export type Dropped = { origin: string; removed: number; end: number };

/** Rows that were compared, and what they were made of then. */
type Compared = { first: number; end: number; print: string };

const PAGE = 500;
const FROZEN = 'it has ended, and its submissions are archived';

/**
 * Removes the archived submissions of a log that are below `end`, of one that has ended all by default. Of a log that goes on,
 * and below `end`, whole tiles of 256 leaves only. Throws ArchiveError if the archive lacks them or has others.
 */
export async function dropArchived(
  deps: DropDeps,
  origin: string,
  end: number | undefined,
): Promise<Dropped> {
  const log = await findLog(deps.pool, origin);
  if (log.endedAt === null && end === undefined)
    throw new ArchiveError(`${origin} goes on: say up to which leaf its submissions are removed (--end)`);
  await dropEmptied(deps.pool, log.id, log.archivedSize);
  const batches = await listArchivableBatches(deps.pool, log.id);
  const wanted = removable(log, batches, end ?? Number.POSITIVE_INFINITY);
  const boundOf = ({ treeSize }: ArchivableBatch) =>
    log.endedAt !== null && treeSize === batches.at(-1)?.treeSize
      ? treeSize
      : treeSize - (treeSize % TILE_WIDTH);
  const last = wanted.at(-1);
  const bound = last === undefined ? 0 : boundOf(last);
  if (bound <= log.archivedSize && log.archivedSize > 0) return { origin, removed: 0, end: log.archivedSize };
  if (bound === 0)
    throw new ArchiveError(
      `${origin} has no whole tiles of witnessed submissions to remove, beside its newest batch`,
    );
  await assertReleased(deps.pool, log, bound, { isWhole: bound === batches.at(-1)?.treeSize });
  deps.onStart(bound - log.archivedSize);
  let at = log.archivedSize;
  const compared: Compared[] = [];
  for (const batch of wanted) {
    const object = await findObject(deps, log, batch);
    const until = boundOf(batch);
    const ids = await compareObject(deps, log, { batch, object, from: at, until, compared });
    await deps.pool.begin(async (tx) => {
      await tx`SELECT set_config('statement_timeout', '0', true)`;
      const place = `${dayFolder(log, batch.day)}/${object.name}`;
      const described = { place, sha256: Buffer.from(object.sha256, 'hex') };
      if (ids.length > 0)
        await insertArchivedObject(tx, { logId: log.id, treeSize: batch.treeSize }, ids, described);
      if (until > at && at === log.archivedSize)
        await insertOperatorEntry(tx, AuditAction.LOG_DROPPED, origin, { first: at, end: bound });
      if (until > at) await removeRows(tx, log, { first: at, end: until }, compared);
    });
    if (until > at) deps.onLeaves(until - at);
    at = Math.max(at, until);
  }
  await dropEmptied(deps.pool, log.id, at);
  return { origin, removed: at - log.archivedSize, end: at };
}

/** The witnessed batches that end at `end` or before; of a log that goes on without the newest. */
function removable(log: Log, batches: readonly ArchivableBatch[], end: number): ArchivableBatch[] {
  const open = batches.findIndex(({ isWitnessed }) => !isWitnessed);
  const witnessed = batches.slice(0, open === -1 ? batches.length : open);
  const older = log.endedAt === null ? witnessed.filter((batch) => batch !== batches.at(-1)) : witnessed;
  return older.filter(({ treeSize }) => treeSize > log.archivedSize && treeSize <= end);
}

async function findObject(
  { storage, signal }: DropDeps,
  log: Log,
  { day, batchId, firstIndex, treeSize }: ArchivableBatch,
): Promise<ManifestObject> {
  const manifest = await findManifest(storage, dayManifestName(log, day), log.origin, signal);
  const object = manifest?.fields.objects.find((one) => one.batchId === batchId);
  if (object?.firstIndex === firstIndex && object.treeSize === treeSize) return object;
  throw new ArchiveError(`the archive lacks the leaves ${firstIndex} to ${treeSize - 1}: archive them first`);
}

type Comparison = {
  batch: ArchivableBatch;
  object: ManifestObject;
  /** Leaves before have no rows any more. */
  from: number;
  /** Rows before are removed with this batch. */
  until: number;
  compared: Compared[];
};

/** Compares an object with its manifest's entry and with the rows. @returns the ids of the batch, none if rows were removed before */
async function compareObject(
  { pool, storage, signal }: DropDeps,
  log: Log,
  { batch, object, from, until, compared }: Comparison,
): Promise<OwnedIds> {
  const { firstIndex, treeSize } = batch;
  const name = `${dayFolder(log, batch.day)}/${object.name}`;
  const start = Math.max(from, firstIndex);
  const middle = Math.min(Math.max(until, start), treeSize);
  for (const [first, end] of [
    [start, middle],
    [middle, treeSize],
  ] as const)
    if (first < end) compared.push({ first, end, print: await printOf(pool, log.id, first, end) });
  const ids: { id: string; projectId: string }[] = [];
  let index = firstIndex;
  let rows: { projects: string[]; rows: string[] } = { projects: [], rows: [] };
  let pageStart = start;
  for await (const line of readObjectLines(storage, { name, object, signal })) {
    if (index >= start) {
      if (index === pageStart + rows.rows.length) {
        pageStart = index;
        rows = await listArchivedRows(pool, log.id, index, Math.min(index + PAGE, treeSize));
      }
      const row = rows.rows[index - pageStart] ?? '';
      if (!line.endsWith(`,"row":${row}}`))
        throw new ArchiveError(`${name}: leaf ${index} has changed since: archive again`);
      const projectId = rows.projects[index - pageStart] ?? '';
      if (start === firstIndex) ids.push({ id: (JSON.parse(row) as { id: string }).id, projectId });
    }
    index++;
  }
  if (index !== treeSize)
    throw new ArchiveError(`${name} has ${index - firstIndex} lines, not ${treeSize - firstIndex}`);
  return ids;
}

/** What tells whether rows have changed: the transactions that wrote them, and how many stamps they have. */
async function printOf(sql: Sql, logId: number, first: number, end: number): Promise<string> {
  const [row] = await sql<{ print: string }[]>`
    SELECT concat(count(*), ' ', md5(string_agg(s.xmin::text, ',' ORDER BY s.log_index)), ' ', (
      SELECT count(*) FROM signature_stamp t
      WHERE t.log_id = ${logId} AND t.log_index >= ${first} AND t.log_index < ${end})) AS print
    FROM submission s WHERE s.log_id = ${logId} AND s.log_index >= ${first} AND s.log_index < ${end}`;
  return row?.print ?? '';
}

/** Removes compared rows, unless one has changed since. */
async function removeRows(
  tx: Sql,
  log: Log,
  { first, end }: { first: number; end: number },
  compared: Compared[],
): Promise<void> {
  await tx`
    SELECT FROM submission WHERE log_id = ${log.id} AND log_index >= ${first} AND log_index < ${end}
    ORDER BY log_index FOR UPDATE`;
  while (compared[0] !== undefined && compared[0].end <= end) {
    const one = compared.shift() as Compared;
    if ((await printOf(tx, log.id, one.first, one.end)) !== one.print)
      throw new ArchiveError(`leaves ${one.first} to ${one.end - 1} have changed meanwhile: archive again`);
  }
  await tx`
    UPDATE log SET archived_size = ${end},
      frozen_at = CASE WHEN ended_at IS NULL THEN frozen_at ELSE coalesce(frozen_at, clock_timestamp()) END,
      frozen_reason = CASE WHEN ended_at IS NULL THEN frozen_reason ELSE coalesce(frozen_reason, ${FROZEN}) END
    WHERE id = ${log.id}`;
  await tx`SELECT remove_submissions(${log.id}, ${first}::bigint, ${end}::bigint)`;
}
