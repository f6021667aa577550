/** Makes tarballs and installs them into projects of their own, as users do. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { stageCli } from '../../src/generate/packages/stage-cli.js';
import { stageClient } from '../../src/generate/packages/stage-client.js';
import { stageServer } from '../../src/generate/packages/stage-server.js';
import { makeTarball } from '../../src/generate/packages/tarball.js';

const PACKAGES = {
  '@attestation-service/client': stageClient,
  '@attestation-service/cli': stageCli,
  'attestation-service': stageServer,
} as const;

/** A project with one of the packages in it. */
export type Project = {
  dir: string;
  /** Where npm put what, below the project; without the project itself. */
  installed: string[];
  /** How a program of the project ended: it gets PATH and `env` alone. */
  run(program: string, args: readonly string[], env?: Record<string, string>): Promise<Ended>;
};

export type Ended = { code: number; stdout: string; stderr: string };

/**
 * Makes the package of this checkout's build and installs it with `npm install`, in a folder that no `node_modules` is
 * above of. Dependencies have the versions of this checkout's lock file, so that npm finds them in its cache, where
 * `npm ci` put them.
 */
export async function installPackage(
  test: Test,
  name: keyof typeof PACKAGES,
  npmArguments: readonly string[] = [],
): Promise<Project> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-package-'));
  test.teardown(() => rm(dir, { recursive: true }));
  const { path } = await makeTarball(PACKAGES[name], { root: process.cwd(), out: join(dir, 'packages') });
  const project = { name: 'project', version: '1.0.0', private: true, type: 'module' };
  const { lockfileVersion, packages } = await readLock(process.cwd());
  const lock = { ...project, lockfileVersion, packages: { ...packages, '': project } };
  await write(dir, 'package.json', { ...project, dependencies: { [name]: `file:${path}` } });
  await write(dir, 'package-lock.json', lock);
  const run: Project['run'] = (program, args, env = {}) =>
    execute(program, args, { cwd: dir, env: { PATH: process.env.PATH ?? '', ...env } });
  const arguments_ = ['install', '--prefer-offline', '--no-audit', '--no-fund', ...npmArguments];
  const { code, stderr } = await execute('npm', arguments_, { cwd: dir, env: process.env });
  if (code !== 0) throw new Error(stderr);
  const paths = Object.keys((await readLock(join(dir, 'node_modules'), '.package-lock.json')).packages);
  return { dir, installed: paths, run };
}

type Lock = { lockfileVersion: number; packages: Record<string, object> };

async function readLock(dir: string, name = 'package-lock.json'): Promise<Lock> {
  return JSON.parse(await readFile(join(dir, name), 'utf8')) as Lock;
}

async function write(dir: string, name: string, value: object): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, name), JSON.stringify(value));
}

/** Runs a program to its end, whatever its exit code. */
export async function execute(
  program: string,
  args: readonly string[],
  options: { cwd: string; env: NodeJS.ProcessEnv; uid?: number; gid?: number },
): Promise<Ended> {
  try {
    return { code: 0, ...(await promisify(execFile)(program, [...args], options)) };
  } catch (error) {
    const { code, stdout, stderr } = error as Partial<Ended>;
    if (typeof code !== 'number' || stdout === undefined || stderr === undefined) throw error;
    return { code, stdout, stderr };
  }
}
