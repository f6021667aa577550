/** A folder with the bundle of each file, at the file's recorded name. */
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { mkdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { readBundle } from '../../proof/verify/read/read-bundle.js';
import { UsageError } from '../cli.js';
import { readBundleFile } from '../input/bundle-file.js';
import { errnoReason } from '../input/input-file.js';
import { BUNDLE_ENDING } from '../sets/folder-files.js';

/** What a temporary file's name has beside the file's. */
const TEMPORARY = `.${BUNDLE_ENDING}.0123456789ab.tmp`;
const MAX_NAME_BYTES = 255;
const BAD_SEGMENT = /(?:^|\/)\.{0,2}(?:\/|$)|\0/;

/** Bundles of files, by the names that the files are recorded under. */
export type BundleFolder = {
  /** Where the bundle of a name is. */
  pathOf(name: string): string;
  /**
   * Whether the submission's bundle is there already. Throws Error if another file is, unless --force has it overwritten.
   */
  has(name: string, id: string): Promise<boolean>;
  /** Writes a bundle as a file that is whole or not there; makes folders. Throws Error if it cannot. */
  write(name: string, data: Uint8Array): Promise<void>;
};

/**
 * Opens a folder for the bundles of files with these names. Throws UsageError if it cannot be written, if a name leads out
 * of it or is too long, if two files have the same, or if one of the bundles exists: unless --force is given, or the build was
 * begun before.
 */
export function openBundleFolder(
  folder: string,
  names: readonly string[],
  { force, isContinued }: { force: boolean; isContinued: boolean },
): BundleFolder {
  const pathOf = (name: string) => join(folder, `${name}${BUNDLE_ENDING}`);
  const seen = new Set<string>();
  for (const name of names) {
    if (BAD_SEGMENT.test(name)) throw new UsageError(`no bundle can be written for the name ${name}`);
    if (Buffer.byteLength(`${basename(name)}${TEMPORARY}`) > MAX_NAME_BYTES)
      throw new UsageError(
        `the name ${name} is too long for a bundle: \`attest bundle --build\` writes it by ID`,
      );
    if (seen.has(name)) throw new UsageError(`two files would have the bundle ${pathOf(name)}`);
    seen.add(name);
    if (!force && !isContinued && existsSync(pathOf(name))) {
      throw new UsageError(
        `${pathOf(name)} exists: --force overwrites it, and --build keeps the bundles of a build`,
      );
    }
  }
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new UsageError(`${folder} cannot be written: ${errnoReason(error as Error)}`);
  }
  const made = new Map<string, Promise<void>>();
  return {
    pathOf,
    has: async (name, id) => {
      const path = pathOf(name);
      if (!existsSync(path)) return false;
      if ((await readBundleId(path)) === id) return true;
      if (force) return false;
      throw new Error(`${path} exists and is not the bundle of ${id}: --force overwrites it`);
    },
    write: async (name, data) => {
      const path = pathOf(name);
      const parent = dirname(path);
      const ready = made.get(parent) ?? makeInside(folder, parent);
      made.set(parent, ready);
      await ready;
      await writeInPlace(path, data);
    },
  };
}

/** The ID of the submission that a file is the bundle of; undefined if it is no bundle. */
export async function readBundleId(path: string): Promise<string | undefined> {
  try {
    return readBundle(await readBundleFile(path)).parsed?.submission.id;
  } catch (error) {
    if (error instanceof UsageError) return undefined;
    throw error;
  }
}

/** Makes a folder. Throws Error if a link on the way leads out of the folder of bundles. */
async function makeInside(folder: string, parent: string): Promise<void> {
  try {
    await mkdir(parent, { recursive: true });
  } catch (error) {
    throw new Error(`${parent} cannot be made: ${errnoReason(error as Error)}`, { cause: error });
  }
  const [root, real] = await Promise.all([realpath(folder), realpath(parent)]);
  if (real !== root && !real.startsWith(root.endsWith(sep) ? root : root + sep)) {
    throw new Error(`${parent} is outside ${folder}, by a symbolic link`);
  }
}

/** Through a temporary file, so that a process that is killed leaves no part of a bundle. */
async function writeInPlace(path: string, data: Uint8Array): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await writeFile(temporary, data, { flag: 'wx' });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw new Error(`${path} cannot be written: ${errnoReason(error as Error)}`, { cause: error });
  }
}
