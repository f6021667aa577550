/**
 * The file of profiles, `attest/profiles.json` in the user's configuration folder (XDG Base Directory Specification). It holds
 * API keys, so it must be readable for its owner alone, as ssh asks of private keys.
 */
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { Env } from '../../config/settings.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { parseJsonText } from '../../proof/verify/read/json-text.js';
import { hasErrno } from '../../server/core/files/errno.js';
import { UsageError } from '../cli.js';
import { errnoReason } from '../input/input-file.js';
import { shellWord } from '../output/shell-word.js';

/** The profiles as they are in the file, by name; each is checked when it is used. */
export type RawProfiles = ReadonlyMap<string, unknown>;

const MAX_FILE_BYTES = 1024 * 1024;
const OF_OTHERS = 0o077;
/** Opening a pipe must not wait for a writer. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Path of the file. Returns undefined if the environment names no home directory. */
export function findProfilesPath({
  XDG_CONFIG_HOME: config = '',
  HOME,
  USERPROFILE,
}: Env): string | undefined {
  const home = HOME || USERPROFILE;
  if (isAbsolute(config)) return join(config, 'attest', 'profiles.json');
  return home ? join(home, '.config', 'attest', 'profiles.json') : undefined;
}

/** Whether there are profiles, one of which may come before the credentials of a data directory. */
export function hasProfiles(env: Env): boolean {
  const path = findProfilesPath(env);
  return path !== undefined && existsSync(path);
}

/**
 * Reads the profiles; none if there is no file. Follows a symbolic link. Throws UsageError, with what to do, if others may
 * read the file, it is another user's, too large, or not a file of profiles.
 */
export function readProfiles(path: string): RawProfiles {
  const text = readOwnFile(path);
  if (text === undefined) return new Map();
  const value = parseProfiles(path, text);
  const { profiles } = value as { profiles?: unknown };
  if (typeof profiles !== 'object' || profiles === null || Array.isArray(profiles))
    throw damaged(path, 'has no object "profiles"');
  return new Map(Object.entries(profiles));
}

function readOwnFile(path: string): Uint8Array | undefined {
  try {
    const fd = openSync(path, FLAGS);
    try {
      assertOwn(path, fstatSync(fd));
      return readFileSync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (hasErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${path} cannot be read: ${errnoReason(error as Error)}`);
  }
}

function assertOwn(path: string, { mode, uid, size }: Stats): void {
  const { getuid } = process;
  if ((mode & constants.S_IFMT) !== constants.S_IFREG)
    throw new UsageError(`${path} is not a file: remove it`);
  if (size > MAX_FILE_BYTES) throw damaged(path, 'is larger than 1 MiB');
  if (getuid === undefined) return;
  if (uid !== getuid() && uid !== 0)
    throw new UsageError(`${path} belongs to another user (${uid}): its keys are not used`);
  if ((mode & OF_OTHERS) !== 0)
    throw new UsageError(
      `other users have access to ${path}, which has API keys: chmod 600 ${shellWord(path)}`,
    );
}

function parseProfiles(path: string, text: Uint8Array): object {
  try {
    const value = parseJsonText(text, MAX_FILE_BYTES);
    if (typeof value === 'object' && value !== null) return value;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw damaged(path, error.message);
  }
  throw damaged(path, 'is not a JSON object');
}

function damaged(path: string, problem: string): UsageError {
  return new UsageError(`${path} ${problem}: mend or remove it, then log in again with \`attest login\``);
}
