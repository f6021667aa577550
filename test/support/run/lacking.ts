/** Tells which tests a machine lacks a program for. */
import { ANVIL_PACKAGE, anvil } from '../foreign/anvil.js';
import { assertApt } from '../foreign/apt.js';
import { formerVersion } from '../foreign/former-version.js';
import { natsServer } from '../foreign/nats-server.js';
import { patroniPython } from '../foreign/patroni/patroni.js';
import { PROGRAMS, type ProgramName } from '../foreign/programs.js';
import { installHint, provide } from '../foreign/provide.js';

/** A program of others: `get` rejects where it cannot be had, `install` is what a person installs then. */
type Need = { get(): unknown; install: string };

/** A program that cannot be had, and the tests that need it, by the paths of their sources. */
export type Lacking = { name: string; install: string; files: string[] };

const MODULE = /(?:^|\/)test\/support\/foreign\/(?:[\w-]+\/)?([\w-]+)\.js$/;

/** By the name of the module in `test/support/foreign/` that a test imports to have it. */
export const NEEDS: ReadonlyMap<string, Need> = new Map([
  ...(Object.keys(PROGRAMS) as ProgramName[]).map((name): [string, Need] => [
    name,
    { get: () => provide(name), install: installHint(name) },
  ]),
  ['nats-server', { get: natsServer, install: 'nats-server' }],
  ['anvil', { get: async () => anvil(), install: `${ANVIL_PACKAGE}, by npm` }],
  ['patroni', { get: patroniPython, install: 'python3-venv' }],
  [
    'former-version',
    { get: formerVersion, install: 'the history of the repository (git fetch --unshallow)' },
  ],
  ['apt', { get: assertApt, install: 'a release of Debian or Ubuntu' }],
]);

/**
 * Gets the programs that tests import and returns those that cannot be had.
 *
 * @param imports the compiled files that each test imports, by the test's own compiled file
 */
export async function findLacking(
  imports: ReadonlyMap<string, ReadonlySet<string>>,
  needs: ReadonlyMap<string, Need> = NEEDS,
): Promise<Lacking[]> {
  const found: Lacking[] = [];
  for (const [name, { get, install }] of needs) {
    const files = [...imports]
      .filter(([, paths]) => namesIn(paths).has(name))
      .map(([file]) => sourceOf(file));
    if (files.length === 0) continue;
    try {
      await get();
    } catch {
      found.push({ name, install, files });
    }
  }
  return found;
}

/** The paths of all tests that lack something. */
export function filesLacking(lacking: readonly Lacking[]): ReadonlySet<string> {
  return new Set(lacking.flatMap(({ files }) => files));
}

/** Lines that name the tests and what to install. */
export function printLacking(lacking: readonly Lacking[]): string[] {
  return lacking.flatMap(({ name, install, files }) => [
    `skipped for want of ${name}; install ${install}:`,
    ...files.map((file) => `  ${file}`),
  ]);
}

/** The source of a compiled test. */
export function sourceOf(file: string): string {
  return file.replace(/^dist\//, '').replace(/\.js$/, '.ts');
}

function namesIn(paths: ReadonlySet<string>): Set<string> {
  return new Set([...paths].map((path) => MODULE.exec(path)?.[1] ?? ''));
}
