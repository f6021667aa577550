import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cached } from './cache.js';
import { EmbeddedError } from './embedded-error.js';

const execute = promisify(execFile);

/** Timeout of an update of the package lists over a slow line. */
const TIMEOUT_MS = 300_000;

/** Runs apt-get with these arguments, as any user; returns what it printed. */
export type Apt = (args: readonly string[]) => Promise<string>;

/**
 * Downloads a package of the operating system's release with apt, which checks its signature, and unpacks it, needing
 * no root and installing nothing. Returns the folder with its tree (`usr/bin/…`); once there it is kept. Packages it
 * depends on are not fetched. `cacheDir` comes from `openCacheDir`. Throws `not_installed` where apt cannot do it.
 */
export async function fetchDebianPackage(name: string, cacheDir: string): Promise<string> {
  if (!/^[a-z0-9][a-z0-9+.-]+$/.test(name)) throw new TypeError(`not a package name: ${name}`);
  return cached(cacheDir, await releaseSpecific(name), async (dir) => {
    const work = join(dir, '.download');
    await mkdir(work);
    try {
      await download(name, work);
      await unpackPackages(work, dir);
    } catch (error) {
      const message = `The package ${name} cannot be had with apt: ${lastLine(error)}`;
      throw new EmbeddedError('not_installed', message, { cause: error });
    }
    await rm(work, { recursive: true });
  });
}

/** The lists of the system may be missing or too old; then new ones are fetched, for this download only. */
async function download(name: string, work: string): Promise<void> {
  try {
    await systemApt(work)(['download', name]);
  } catch {
    const apt = await aptWithNewLists(join(work, 'apt'), work);
    await apt(['download', name]);
  }
}

/** Unpacks the downloaded packages of one folder into another. Throws if there are none. */
export async function unpackPackages(from: string, to: string): Promise<void> {
  const files = (await readdir(from)).filter((entry) => entry.endsWith('.deb'));
  if (files.length === 0) throw new Error('apt-get downloaded nothing');
  for (const file of files) await execute('dpkg', ['-x', join(from, file), to]);
}

/** Runs apt in `cwd`, which `download` writes to, with the package lists of the system. */
export function systemApt(cwd: string, options: readonly string[] = []): Apt {
  return async (args) => {
    const all = ['-q', ...options, ...args];
    return (await execute('apt-get', all, { cwd, timeout: TIMEOUT_MS, maxBuffer: 2 ** 26 })).stdout;
  };
}

/** Runs apt in `cwd` with package lists that are fetched now into `state`, a folder to be made. Needs no root. */
export async function aptWithNewLists(state: string, cwd: string): Promise<Apt> {
  for (const folder of ['lists', 'archives'])
    await mkdir(join(state, folder, 'partial'), { recursive: true });
  const own = ['-o', `Dir::State::lists=${state}/lists`, '-o', `Dir::Cache=${state}`];
  await systemApt(cwd, [...own, '-o', 'APT::Sandbox::User='])(['update']);
  return systemApt(cwd, own);
}

/** The name of a cache entry of this machine's release: programs of another one may lack the libraries they want. */
export async function releaseSpecific(name: string): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  const release = /^VERSION_CODENAME=([a-z0-9.-]+)$/m.exec(text)?.[1] ?? 'unknown';
  return `${name}_${release}_${process.arch}`;
}

/** The last line that a failed program printed, or of the error's message. */
export function lastLine(error: unknown): string {
  const text =
    error instanceof Error && 'stderr' in error && error.stderr ? String(error.stderr) : String(error);
  return text.trim().split('\n').at(-1) ?? '';
}
