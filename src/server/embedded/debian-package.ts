import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cached } from './cache.js';
import { EmbeddedError } from './embedded-error.js';

const execute = promisify(execFile);

/** Timeout of an update of the package lists over a slow line. */
const TIMEOUT_MS = 300_000;

/**
 * Downloads a package of the operating system's release with apt, which checks its signature, and unpacks it, needing
 * no root and installing nothing. Returns the folder with its tree (`usr/bin/…`); once there it is kept. Packages it
 * depends on are not fetched. `cacheDir` comes from `openCacheDir`. Throws `not_installed` where apt cannot do it.
 */
export async function fetchDebianPackage(name: string, cacheDir: string): Promise<string> {
  if (!/^[a-z0-9][a-z0-9+.-]+$/.test(name)) throw new TypeError(`not a package name: ${name}`);
  return cached(cacheDir, `${name}_${await releaseName()}_${process.arch}`, async (dir) => {
    const work = join(dir, '.download');
    await mkdir(work);
    try {
      await execute('dpkg', ['-x', await download(name, work), dir]);
    } catch (error) {
      const message = `The package ${name} cannot be had with apt: ${lastLine(error)}`;
      throw new EmbeddedError('not_installed', message, { cause: error });
    }
    await rm(work, { recursive: true });
  });
}

/** The lists of the system may be missing or too old; then new ones are fetched, for this download only. */
async function download(name: string, work: string): Promise<string> {
  const apt = (args: string[]) => execute('apt-get', ['-q', ...args], { cwd: work, timeout: TIMEOUT_MS });
  try {
    await apt(['download', name]);
  } catch {
    await mkdir(join(work, 'lists/partial'), { recursive: true });
    await mkdir(join(work, 'archives/partial'), { recursive: true });
    const own = ['-o', `Dir::State::lists=${work}/lists`, '-o', `Dir::Cache=${work}`];
    await apt(['-o', 'APT::Sandbox::User=', ...own, 'update']);
    await apt([...own, 'download', name]);
  }
  const file = (await readdir(work)).find((entry) => entry.endsWith('.deb'));
  if (file === undefined) throw new Error('apt-get downloaded nothing');
  return join(work, file);
}

/** The release a package was built for: another one may lack the libraries it wants. */
async function releaseName(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return /^VERSION_CODENAME=([a-z0-9.-]+)$/m.exec(text)?.[1] ?? 'unknown';
}

function lastLine(error: unknown): string {
  const text =
    error instanceof Error && 'stderr' in error && error.stderr ? String(error.stderr) : String(error);
  return text.trim().split('\n').at(-1) ?? '';
}
