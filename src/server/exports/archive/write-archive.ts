/**
 * Writes the settled batches of a log to an archive, oldest first: an object a batch, a signed manifest a day, and last the
 * record of a log that has ended. Each object is made of the rows as they are now, and written unless it is there with the
 * same bytes: who archives again continues where the last one ended, and replaces what was redacted or corrected since. Of a
 * batch whose first rows were removed, their lines are those of its former object.
 */
import type { ManifestObject } from '../../../proof/export/manifest-fields.js';
import { renewArchivedObject } from '../../attestations/archived/archived-objects.js';
import type { Pool } from '../../database/connect.js';
import type { LogCache } from '../../log/log-cache.js';
import type { Log } from '../../log/store/logs.js';
import { spool } from '../ship/spool.js';
import type { SpoolBudget } from '../ship/spool-budget.js';
import { ArchiveError } from './archive-error.js';
import { renderArchive } from './archive-lines.js';
import { archivedFileName, dayFolder, dayManifestName } from './archive-names.js';
import { type ArchivableBatch, listArchivableBatches } from './archived-rows.js';
import { findLog } from './find-log.js';
import { copyLines } from './stored-lines.js';
import { findManifest, putObject } from './stored-objects.js';
import { type SigningDeps, writeManifest, writeRecord } from './write-manifests.js';

/** What archiving needs. */
export type ArchiveDeps = SigningDeps & {
  pool: Pool;
  logCache: LogCache;
  temporaryDirectory: string;
  spoolBudget: SpoolBudget;
  /** Gets the number of leaves to archive. */
  onStart: (leaves: number) => void;
  onLeaves: (leaves: number) => void;
};

/** What was archived: leaves `[first, end)`, the objects of batches, those of them that were written, and their bytes. */
export type Archived = {
  origin: string;
  first: number;
  end: number;
  objects: number;
  written: number;
  bytes: number;
  /** Whether the log has ended and is archived whole: it can be imported. */
  isWhole: boolean;
  /** Whether its next epoch has begun, and evidence of it may still come. */
  isEnding: boolean;
};

/** A part of a log: `first` is a leaf of the first batch, no batch ends beyond `end`. */
type ArchiveRange = { first?: number | undefined; end?: number | undefined };

/** A day's batches: all that the tables have, and those to write. */
type Day = { day: string; all: ArchivableBatch[]; wanted: ArchivableBatch[] };

/** Archives the settled batches of a log. Throws ArchiveError if there are none, or if the archive has a gap before them. */
export async function archiveLog(
  deps: ArchiveDeps,
  origin: string,
  { first: from, end: to = Number.POSITIVE_INFINITY }: ArchiveRange,
): Promise<Archived> {
  const log = await findLog(deps.pool, origin);
  const { archivedSize } = log;
  const first = from ?? archivedSize;
  if (first < archivedSize)
    throw new ArchiveError(
      `the submissions of ${origin} before leaf ${archivedSize} were removed: begin there (--first)`,
    );
  const batches = await listArchivableBatches(deps.pool, log.id);
  const wanted = settled(batches).filter(({ treeSize }) => treeSize > first && treeSize <= to);
  const last = wanted.at(-1);
  if (last === undefined) {
    const range = `from leaf ${first} on${Number.isFinite(to) ? ` that ends by leaf ${to}` : ''}`;
    throw new ArchiveError(`${origin} has no settled batch ${range}`);
  }
  const start = Math.max(wanted[0]?.firstIndex ?? 0, archivedSize);
  deps.onStart(last.treeSize - start);
  const result = { objects: 0, written: 0, bytes: 0 };
  for (const day of daysOf(batches, wanted)) {
    await assertJoined(deps, log, batches, day);
    const { objects, written } = await writeDay(deps, log, day);
    result.objects += objects.length;
    result.written += written;
    result.bytes += objects.reduce((sum, { bytes }) => sum + bytes, 0);
    const isComplete = objects.length === day.all.length && isDayOver(log, batches, day);
    await writeManifest(deps, log, { day: day.day, objects, isComplete });
  }
  const isWhole = log.endedAt !== null && last === batches.at(-1);
  if (isWhole) await writeRecord(deps, log, batches, last.treeSize);
  const isEnding = log.closedAt !== null && log.endedAt === null;
  return { origin, first: start, end: last.treeSize, ...result, isWhole, isEnding };
}

/** The batches before the first that has not settled. */
function settled(batches: readonly ArchivableBatch[]): ArchivableBatch[] {
  const open = batches.findIndex(({ isSettled }) => !isSettled);
  return batches.slice(0, open === -1 ? batches.length : open);
}

/** The days of the batches to write, and the day before, which may be over since. */
function daysOf(batches: readonly ArchivableBatch[], wanted: readonly ArchivableBatch[]): Day[] {
  const firstIndex = wanted[0]?.firstIndex ?? 0;
  const before = batches.findLast(({ treeSize }) => treeSize === firstIndex);
  const days = new Map<string, Day>();
  for (const batch of before === undefined ? wanted : [before, ...wanted]) {
    const day = days.get(batch.day) ?? { day: batch.day, all: [], wanted: [] };
    if (batch !== before) day.wanted.push(batch);
    days.set(batch.day, day);
  }
  for (const batch of batches) days.get(batch.day)?.all.push(batch);
  return [...days.values()];
}

/** Whether no further batch of a day will come. */
function isDayOver({ endedAt }: Log, batches: readonly ArchivableBatch[], { day }: Day): boolean {
  return batches.at(-1)?.day !== day || endedAt !== null;
}

/** Throws unless the archive has what is before the first batch of a day. */
async function assertJoined(
  { storage, signal }: ArchiveDeps,
  log: Log,
  batches: readonly ArchivableBatch[],
  { all, day }: Day,
): Promise<void> {
  const start = all[0]?.firstIndex ?? 0;
  const before = batches.find(({ treeSize }) => treeSize === start);
  if (before === undefined || before.day === day) return;
  const manifest = await findManifest(storage, dayManifestName(log, before.day), log.origin, signal);
  const end = manifest?.fields.logs[0]?.to ?? 0;
  if (end !== start) throw gapBefore(start);
}

const gapBefore = (index: number) =>
  new ArchiveError(`the archive lacks leaves before ${index}: archive from an earlier one (--first)`);

/** Writes the objects of a day. @returns those of the whole day, and how many were written */
async function writeDay(
  deps: ArchiveDeps,
  log: Log,
  { day, all, wanted }: Day,
): Promise<{ objects: ManifestObject[]; written: number }> {
  const { storage, signal } = deps;
  const listed = (await findManifest(storage, dayManifestName(log, day), log.origin, signal))?.fields.objects;
  const known = new Map(listed?.map((object) => [object.batchId, object]));
  const through = wanted.at(-1)?.treeSize ?? all.at(-1)?.treeSize ?? 0;
  const isWanted = new Set(wanted);
  const objects: ManifestObject[] = [];
  let written = 0;
  for (const batch of all) {
    const former = known.get(batch.batchId);
    if (isWanted.has(batch)) {
      const made = await writeBatch(deps, log, { batch, former, folder: dayFolder(log, day) });
      if (made.isWritten) written++;
      objects.push(made.object);
    } else if (former !== undefined) objects.push(former);
    else if (batch.treeSize <= through) throw gapBefore(batch.treeSize);
    else break;
  }
  return { objects, written };
}

async function writeBatch(
  { pool, logCache, storage, temporaryDirectory, spoolBudget: budget, signal, onLeaves }: ArchiveDeps,
  log: Log,
  { batch, former, folder }: { batch: ArchivableBatch; former: ManifestObject | undefined; folder: string },
): Promise<{ object: ManifestObject; isWritten: boolean }> {
  const { batchId, firstIndex, treeSize } = batch;
  const fileName = archivedFileName(batchId);
  const name = `${folder}/${fileName}`;
  const from = Math.max(firstIndex, log.archivedSize);
  const isCut = from > firstIndex;
  if (isCut && former === undefined) throw gapBefore(from);
  async function* render() {
    if (isCut && former !== undefined)
      yield* copyLines(storage, { name, object: former, signal }, from - firstIndex);
    yield* renderArchive({ pool, logCache }, log, { firstIndex, treeSize, from }, onLeaves);
  }
  const made = { name, contentType: 'application/gzip', revision: (former?.revision ?? 0) + 1, render };
  const options = { folder: temporaryDirectory, budget, projectId: log.origin, isGzip: true, signal };
  return spool(made, options, async (spooled) => {
    const whole = await spooled.whole();
    const sha256 = Buffer.from(whole.sha256).toString('hex');
    const stored = await storage.store.read(storage.nameOf(name), signal);
    const isThere = stored?.sha256 === sha256;
    if (!isThere) await putObject(storage, whole, stored, signal);
    if (isCut) await renewArchivedObject(pool, { logId: log.id, treeSize }, whole.sha256);
    const revision = former?.sha256 === sha256 ? former.revision : made.revision;
    const object = {
      name: fileName,
      sha256,
      batchId,
      log: log.origin,
      firstIndex,
      treeSize,
      submissions: treeSize - firstIndex,
      bytes: whole.bytes,
      revision,
    };
    return { object, isWritten: !isThere };
  });
}
