/** Finds the programs of others, or gets them. */
import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { lastLine } from '../../../src/server/embedded/debian-package.js';
import { fetchProgram } from './debian-tree.js';
import { PROGRAMS, type Program, type ProgramName } from './programs.js';

const execute = promisify(execFile);

/**
 * Returns the absolute path of a program: the machine's own, or that of its Debian packages, unpacked into a cache. Throws
 * an error that says what to install where there is neither.
 */
export async function provide(name: ProgramName): Promise<string> {
  const program: Program = PROGRAMS[name];
  const [command = ''] = Object.keys(program.commands);
  const installed = await findInstalled(program);
  if (installed !== undefined) return join(installed, command);
  try {
    const fetched = join(await fetchProgram(name, program), command);
    if (program.suits !== undefined) await execute(fetched, program.suits);
    return fetched;
  } catch (cause) {
    const message = `There is no ${name}; install ${installHint(name)} (${lastLine(cause)})`;
    throw new Error(message, { cause });
  }
}

/** As `provide`; the program is on the PATH of this process from then on, and its commands are that of one place. */
export async function putOnPath(name: ProgramName): Promise<string> {
  const path = await provide(name);
  const folders = (process.env.PATH ?? '').split(delimiter);
  if (!folders.includes(dirname(path))) process.env.PATH = [dirname(path), ...folders].join(delimiter);
  return path;
}

/** The package of Debian's that a person installs to have a program. */
export function installHint(name: ProgramName): string {
  return PROGRAMS[name].packages[0] ?? name;
}

/** The folder that has all commands of a program that suits. */
async function findInstalled({ commands, folders = [], suits }: Program): Promise<string | undefined> {
  const places = [...folders, ...(process.env.PATH ?? '').split(delimiter)];
  const [program = '', ...others] = Object.keys(commands);
  const isThere = (command: string) => places.some((folder) => isProgram(join(folder, command)));
  if (!others.every(isThere)) return undefined;
  for (const folder of places.filter((place) => isProgram(join(place, program)))) {
    if (suits === undefined || (await succeeds(join(folder, program), suits))) return folder;
  }
  return undefined;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function succeeds(file: string, args: readonly string[]): Promise<boolean> {
  return execute(file, args).then(
    () => true,
    () => false,
  );
}
