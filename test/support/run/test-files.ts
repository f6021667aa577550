/** Finds test files by the names that people give them. */
import { existsSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { build } from 'esbuild';
import { filesIn } from '../../../src/generate/files-in.js';

/** The compiled test files, by their paths from the checkout's root; or what is wrong with the names. */
export type NamedTests = { files: string[] } | { problem: string };

/**
 * Finds the compiled test of each name, which is the path of a test's source or of what it is compiled to: absolute, or
 * relative to `root`, the root of the checkout.
 */
export function findNamedTests(root: string, names: readonly string[]): NamedTests {
  const files = names.map((name) => compiledPath(root, name));
  const unknown = names.find((_, i) => !isTest(root, files[i]!));
  if (unknown === undefined) return { files };
  const similar = testsNamedLike(root, unknown).map((path) => `  ${path}`);
  const hint = similar.length === 0 ? [] : ['Tests of a similar name:', ...similar];
  return { problem: [`There is no test file ${unknown}`, ...hint].join('\n') };
}

/** Whether a compiled test imports, directly or not, the Postgres and nats-server that the tests of a run share. */
export async function needsServers(root: string, file: string): Promise<boolean> {
  const { metafile } = await build({
    entryPoints: [file],
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    write: false,
    metafile: true,
  });
  return Object.keys(metafile.inputs).some((path) => path.endsWith('servers/shared-servers.js'));
}

function compiledPath(root: string, name: string): string {
  const path = relative(root, resolve(root, name));
  return path.replace(/^test\b/, join('dist', 'test')).replace(/\.ts$/, '.js');
}

function isTest(root: string, path: string): boolean {
  return path.startsWith(join('dist', 'test')) && path.endsWith('.test.js') && existsSync(join(root, path));
}

function testsNamedLike(root: string, name: string): string[] {
  const word = basename(name).replace(/\..*/, '');
  return filesIn(join(root, 'test'))
    .filter((path) => path.endsWith('.test.ts') && basename(path).includes(word))
    .map((path) => relative(root, path));
}
