import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openCacheDir } from './cache.js';
import { fetchDebianPackage } from './debian-package.js';
import { EmbeddedError } from './embedded-error.js';

const execute = promisify(execFile);

/** The name of the server's program. */
export const NATS_PROGRAM = 'nats-server';

/** The first version whose streams can refuse a second message on a subject. */
const OLDEST_MINOR_OF_2 = 9;

/**
 * The path of nats-server: the one on PATH, else of Debian's package, unpacked into the cache. Throws EmbeddedError
 * `not_installed` where neither can be had.
 */
export async function getNatsProgram(cacheDir: string | undefined): Promise<string> {
  const installed = await findOnPath();
  if (installed !== undefined && (await isUsable(installed))) return installed;
  try {
    const tree = await fetchDebianPackage(NATS_PROGRAM, await openCacheDir(cacheDir));
    return join(tree, 'usr/sbin', NATS_PROGRAM);
  } catch (cause) {
    const wanted = `nats-server 2.${OLDEST_MINOR_OF_2} or newer is not on PATH.`;
    const advice = 'Install it (the package nats-server of Debian, Ubuntu or Homebrew), or set NATS_URL.';
    throw new EmbeddedError('not_installed', `${wanted} ${advice} ${(cause as Error).message}`, { cause });
  }
}

async function findOnPath(): Promise<string | undefined> {
  const { stdout } = await execute('sh', ['-c', `command -v ${NATS_PROGRAM}`]).catch(() => ({ stdout: '' }));
  return stdout.startsWith('/') ? stdout.trim() : undefined;
}

async function isUsable(file: string): Promise<boolean> {
  const { stdout } = await execute(file, ['--version']).catch(() => ({ stdout: '' }));
  const [, major, minor] = /v(\d+)\.(\d+)/.exec(stdout) ?? [];
  return Number(major) > 2 || (Number(major) === 2 && Number(minor) >= OLDEST_MINOR_OF_2);
}
