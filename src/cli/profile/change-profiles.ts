import { mkdir, readdir, realpath, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Env } from '../../config/settings.js';
import { hasErrno } from '../../server/core/files/errno.js';
import { findFileLock } from '../../server/core/files/file-lock.js';
import { writeFileAtomic } from '../../server/core/files/write-file-atomic.js';
import { UsageError } from '../cli.js';
import { errnoReason } from '../input/input-file.js';
import type { Profile } from './find-profile.js';
import { findProfilesPath, readProfiles } from './profile-file.js';

/** Path of the file of profiles. Throws UsageError if the environment names no home directory. */
export function getProfilesPath(env: Env): string {
  const path = findProfilesPath(env);
  if (path === undefined) throw new UsageError('there is no place for profiles: HOME is not set');
  return path;
}

/**
 * Keeps a profile under a name, or with undefined forgets it, in place of the one that had it. Returns whether there was one.
 * Other profiles stay as they are. One change of the file waits for another, and readers see all of a change or nothing of it.
 * Throws UsageError if the file cannot be read or written.
 */
export async function changeProfile(
  path: string,
  name: string,
  profile: Profile | undefined,
): Promise<boolean> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const lock = await findFileLock(`${path}.lock`, { wait: true });
    try {
      return await change(path, name, profile);
    } finally {
      await lock?.release();
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${path} cannot be written: ${errnoReason(error as Error)}`);
  }
}

async function change(path: string, name: string, profile: Profile | undefined): Promise<boolean> {
  const profiles = new Map(readProfiles(path));
  const wasThere = profiles.delete(name);
  if (profile !== undefined) profiles.set(name, { base_url: profile.baseUrl, api_key: profile.apiKey });
  else if (!wasThere) return false;
  const target = await followLink(path);
  await removeTemporaries(target);
  if (profiles.size === 0) await rm(target, { force: true });
  else
    await writeFileAtomic(target, `${JSON.stringify({ profiles: Object.fromEntries(profiles) }, null, 2)}\n`);
  return wasThere;
}

/** The file that a symbolic link leads to, so that a change does not replace the link. */
async function followLink(path: string): Promise<string> {
  return realpath(path).catch((error: unknown) => {
    if (hasErrno(error, 'ENOENT')) return path;
    throw error;
  });
}

/** Removes what a killed write has left, which holds keys. The lock is held: nobody else writes. */
async function removeTemporaries(path: string): Promise<void> {
  const [folder, start] = [dirname(path), `${basename(path)}.`];
  const left = (await readdir(folder)).filter((name) => name.startsWith(start) && name.endsWith('.tmp'));
  for (const name of left) await rm(join(folder, name), { force: true });
}
