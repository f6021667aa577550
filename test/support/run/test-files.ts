/** Finds test files by the names that people give them. */
import { existsSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
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

/** The compiled tests of a checkout, by their paths from its root. */
export function allTests(root: string): string[] {
  return filesIn(join(root, 'dist/test'))
    .filter((path) => path.endsWith('.test.js'))
    .map((path) => relative(root, path));
}

/** Whether a test with these imports uses the Postgres and nats-server that the tests of a run share. */
export function needsServers(imports: ReadonlySet<string>): boolean {
  return [...imports].some((path) => path.endsWith('servers/shared-servers.js'));
}

/** Whether a test with these imports has cases that only a long run makes. */
export function hasLongCases(imports: ReadonlySet<string>): boolean {
  return [...imports].some((path) => path.endsWith('support/long.js'));
}

/** Whether all of a test is for long runs: its name ends with `.long.test`. */
export function isLongOnly(path: string): boolean {
  return path.endsWith('.long.test.js');
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
