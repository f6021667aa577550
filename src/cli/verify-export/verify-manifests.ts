/** Verifies manifests: signature, place, and that the objects they list are there. */
import { resolve, sep } from 'node:path';
import type { ManifestFields } from '../../proof/export/manifest-fields.js';
import { MAX_MANIFEST_BYTES } from '../../proof/export/read-manifest.js';
import { type ManifestOptions, verifyManifest } from '../../proof/export/verify-manifest.js';
import { EXPORT_ID } from '../../protocol/ids.js';
import { readInputFile } from '../input/input-file.js';
import type { ExportFile, ExportFolder } from './find-files.js';
import { addProblem, type Tally } from './tally.js';

/** The patterns of a folder's path in an export, from its last part to its first. */
const PLACE = [/^\d\d$/, /^\d\d$/, /^\d{4}$/, /^(?:live|test)$/, EXPORT_ID];

/** The place of the origin in the folder of an archive, which any folder could have as its name. */
const ARCHIVE_PLACE = 4;

/** Reads and verifies a manifest. Returns its fields if it is verified, or else adds the problem. */
export async function openManifest(
  tally: Tally,
  file: ExportFile,
  options: ManifestOptions,
): Promise<ManifestFields | undefined> {
  let bytes: Uint8Array;
  try {
    bytes = await readInputFile(file.path, 'a manifest', MAX_MANIFEST_BYTES);
  } catch (error) {
    addProblem(tally, { file: file.name, reason: (error as Error).message, verdict: 'could_not_check' });
    return undefined;
  }
  const { manifest, problem, isUnknown } = await verifyManifest(bytes, options);
  if (manifest === undefined) {
    const verdict = isUnknown ? 'could_not_check' : 'not_verified';
    addProblem(tally, { file: file.name, reason: problem, verdict });
    return undefined;
  }
  tally.manifests++;
  return manifest;
}

/**
 * Checks that a manifest is in its folder, `<export id or origin>/<environment>/yyyy/mm/dd`, and that the objects that it lists
 * are. Above the given directory folders may have any name.
 */
export function checkFolder(
  tally: Tally,
  directory: string,
  { name, manifest: file, objects }: ExportFolder,
  manifest: ManifestFields,
): void {
  if (file === undefined) return;
  const add = (reason: string) => addProblem(tally, { file: file.name, reason, verdict: 'not_verified' });
  if (!isInPlace(directory, name, manifest)) {
    add(
      `it is the manifest of ${manifest.day} of ${manifest.exportId} (${manifest.environment}), in another folder`,
    );
  }
  const present = new Set(objects.map((object) => object.path.slice(object.path.lastIndexOf(sep) + 1)));
  const missing = manifest.objects.filter((object) => !present.has(object.name));
  for (const object of missing) add(`the object ${object.name}, which it lists, is missing`);
}

function isInPlace(directory: string, folder: string, manifest: ManifestFields): boolean {
  const expected = [...manifest.day.split('-').reverse(), manifest.environment, manifest.exportId];
  const below = folder === '' ? 0 : folder.split('/').length;
  const parts = resolve(directory, folder).split(sep).reverse();
  for (const [i, part] of expected.entries()) {
    const actual = parts[i] ?? '';
    if (actual === part) continue;
    // A folder that the user named has no such form, and nothing above it says more.
    const isOfForm = i === ARCHIVE_PLACE && manifest.project === null ? false : PLACE[i]?.test(actual);
    return i >= below && isOfForm !== true;
  }
  return true;
}
