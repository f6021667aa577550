/** Verifies exported objects and manifests: one file, or all in a directory. */
import { basename } from 'node:path';
import { type CoveringManifest, checkCoverage, covers } from '../../proof/export/coverage.js';
import type { ManifestFields } from '../../proof/export/manifest-fields.js';
import { type BatchRange, rangeText } from '../../proof/export/object-check.js';
import { createLineVerifier, type LineOptions } from '../../proof/export/verify-line.js';
import type { ManifestOptions } from '../../proof/export/verify-manifest.js';
import { UsageError } from '../cli.js';
import { type ExportFile, type ExportFolder, isManifest, isObject, walkFolders } from './find-files.js';
import { addProblem, addUncovered, createTally, type Tally } from './tally.js';
import { checkFolder, openManifest } from './verify-manifests.js';
import { type ObjectDeps, verifyObject } from './verify-object.js';

/** The trust to verify against, and a callback of progress, in bytes read. */
type ExportOptions = {
  readonly lines: LineOptions;
  readonly manifests: ManifestOptions;
  readonly onBytes: (bytes: number) => void;
};

const DAY_FOLDER = /(?:^|\/)\d{4}\/\d\d\/\d\d$/;

/** The folders of one export: what its manifests cover, and the objects that none of them lists. */
type Days = {
  readonly isWhole: boolean;
  readonly manifests: CoveringManifest[];
  readonly unlisted: { readonly file: string; readonly range: BatchRange }[];
};

/** Verifies an object or a manifest. Throws UsageError if its name is that of neither. */
export async function verifyExportFile(path: string, options: ExportOptions): Promise<Tally> {
  const tally = createTally();
  const file = { path, name: path };
  if (isManifest(path)) {
    const manifest = await openManifest(tally, file, options.manifests);
    if (manifest !== undefined)
      addExport(tally, { isWhole: false, manifests: [covering(file, manifest)], unlisted: [] });
    return tally;
  }
  if (!isObject(path))
    throw new UsageError(`${path} is neither a .jsonl or .jsonl.gz file nor a manifest.json`);
  await verifyObject(objectDeps(tally, options), file, undefined);
  addUncovered(tally, path);
  return tally;
}

/** Verifies all objects and manifests in a directory. Throws UsageError if there are none. */
export async function verifyExportDirectory(directory: string, options: ExportOptions): Promise<Tally> {
  const tally = createTally();
  const deps = objectDeps(tally, options);
  const exports = new Map<string, Days>();
  let isEmpty = true;
  for await (const folder of walkFolders(directory)) {
    isEmpty = false;
    for (const problem of folder.problems) addProblem(tally, problem);
    const manifest = folder.manifest && (await openManifest(tally, folder.manifest, options.manifests));
    const days = daysOf(exports, folder.name);
    if (folder.manifest !== undefined && manifest !== undefined) {
      checkFolder(tally, directory, folder, manifest);
      days.manifests.push(covering(folder.manifest, manifest));
    }
    await verifyObjects(deps, folder, manifest, days);
  }
  if (isEmpty) throw new UsageError(`${directory} has no exported objects and no manifests`);
  for (const days of exports.values()) addExport(tally, days);
  return tally;
}

function objectDeps(tally: Tally, { lines, onBytes }: ExportOptions): ObjectDeps {
  return { tally, verifyLine: createLineVerifier(lines), onBytes };
}

/** The export that a folder is of: `…/yyyy/mm/dd` all share one. */
function daysOf(exports: Map<string, Days>, folder: string): Days {
  const isWhole = DAY_FOLDER.test(folder);
  const root = isWhole ? folder.replace(DAY_FOLDER, '/') : '';
  const days = exports.get(root) ?? { isWhole, manifests: [], unlisted: [] };
  exports.set(root, days);
  return days;
}

async function verifyObjects(
  deps: ObjectDeps,
  { objects }: ExportFolder,
  manifest: ManifestFields | undefined,
  days: Days,
): Promise<void> {
  const listed = new Map(manifest?.objects.map((object) => [object.name, object]));
  for (const object of objects) {
    const entry = listed.get(basename(object.path));
    const range = await verifyObject(deps, object, entry && manifest && { object: entry, manifest });
    if (entry !== undefined) continue;
    if (manifest?.isComplete) {
      const reason = 'the manifest of its folder is complete and does not list it';
      addProblem(deps.tally, { file: object.name, reason, verdict: 'not_verified' });
      continue;
    }
    addUncovered(deps.tally, object.name);
    if (range !== undefined) days.unlisted.push({ file: object.name, range });
  }
}

/** Checks the manifests of an export against each other, and the unlisted objects against all of them. */
function addExport(tally: Tally, { isWhole, manifests, unlisted }: Days): void {
  const { logs, problems } = checkCoverage(manifests, isWhole);
  for (const problem of problems) addProblem(tally, { ...problem, verdict: 'not_verified' });
  for (const { file, range } of unlisted) {
    const covering = manifests.find((manifest) => covers(manifest, range));
    if (covering === undefined) continue;
    const reason = `${covering.file} covers ${rangeText(range)} and does not list it`;
    addProblem(tally, { file, reason, verdict: 'not_verified' });
  }
  for (const { file, reason } of findOverlaps(unlisted))
    addProblem(tally, { file, reason, verdict: 'not_verified' });
  const sorted = [...manifests].sort((a, b) => (a.day < b.day ? -1 : 1));
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return;
  const { exportId, project, environment } = first;
  const { isComplete } = last;
  tally.exports.push({
    exportId,
    project,
    environment,
    firstDay: first.day,
    lastDay: last.day,
    isComplete,
    logs,
  });
}

/** Batches do not overlap: two objects with the same leaves are one of them too many. */
function findOverlaps(unlisted: Days['unlisted']): { file: string; reason: string }[] {
  const ends = new Map<string, Days['unlisted'][number]>();
  const sorted = [...unlisted].sort((a, b) => a.range.firstIndex - b.range.firstIndex);
  return sorted.flatMap(({ file, range }) => {
    const before = ends.get(range.log);
    if (before === undefined || before.range.treeSize < range.treeSize) ends.set(range.log, { file, range });
    if (before === undefined || range.firstIndex >= before.range.treeSize) return [];
    return [{ file, reason: `it has ${rangeText(range)}, some of which ${before.file} has too` }];
  });
}

function covering({ name }: ExportFile, { objects: _, ...fields }: ManifestFields): CoveringManifest {
  return { ...fields, file: name };
}
