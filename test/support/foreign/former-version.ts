/** The program of the version before this one, built from the history of this checkout. */
import { execFile } from 'node:child_process';
import { rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cached, openCacheDir } from '../../../src/server/embedded/cache.js';
import { provide } from './provide.js';

const execute = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const MIGRATIONS = 'src/server/database/migrations';
/** Of the program only: the tests of that version are not built. */
const TSCONFIG = {
  extends: './tsconfig.json',
  compilerOptions: { noCheck: true, incremental: false, tsBuildInfoFile: null, declaration: false },
  include: ['src', 'gen'],
};

/**
 * Returns the arguments for node that start the former version: of the commit in TEST_FORMER_REF, or before the newest one
 * that added a migration. It is built once for each commit, with the packages of this checkout. Throws without history.
 */
export async function formerVersion(): Promise<string[]> {
  const git = await provide('git');
  const commit = await findCommit(git);
  const dir = await cached(await openCacheDir(), `former-version-${commit}`, (dir) =>
    build(git, commit, dir),
  );
  await linkPackages(dir);
  return [join(dir, 'dist/attest/main.js')];
}

async function findCommit(git: string): Promise<string> {
  const run = async (...args: string[]) => (await execute(git, args, { cwd: ROOT })).stdout.trim();
  const added = () => run('log', '-1', '--diff-filter=A', '--format=%H', '--', MIGRATIONS);
  const ref = process.env.TEST_FORMER_REF ?? `${await added()}^`;
  return run('rev-parse', '--verify', `${ref}^{commit}`);
}

async function build(git: string, commit: string, dir: string): Promise<void> {
  const archive = join(dir, 'source.tar');
  await execute(git, ['archive', '--output', archive, commit], { cwd: ROOT });
  await execute('tar', ['--extract', '--file', archive, '--directory', dir]);
  await linkPackages(dir);
  await writeFile(join(dir, 'tsconfig.former.json'), JSON.stringify(TSCONFIG));
  const bin = (name: string, ...args: string[]) =>
    execute(join(ROOT, 'node_modules/.bin', name), args, { cwd: dir });
  await bin('tsc', '--project', 'tsconfig.former.json');
  for (const step of ['copy-assets', 'build-web', 'bundle-program'])
    await bin('tsx', `src/generate/${step}.ts`);
  for (const name of ['source.tar', 'node_modules', 'test', 'docs', 'deploy'])
    await rm(join(dir, name), { recursive: true, force: true });
}

/** What the program loads on demand; the checkout that it was built from may be gone. */
async function linkPackages(dir: string): Promise<void> {
  const link = join(dir, 'node_modules');
  await rm(link, { force: true });
  await symlink(join(ROOT, 'node_modules'), link);
}
