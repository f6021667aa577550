import { spawnSync } from 'node:child_process';

/** Result of a check: `problem` if it failed, `note` for what a reader should know anyway. */
export type Finding = { problem?: string; note?: string };

/** Whether there is such a program. */
export function isProgram(name: string): boolean {
  return spawnSync(name, ['--version']).error === undefined;
}

/** The program's standard output, trimmed; undefined when it ends with anything but 0. Throws when there is no such program. */
export function findOutput(cwd: string, program: string, args: readonly string[]): string | undefined {
  const { status, stdout, error } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (error !== undefined) throw error;
  return status === 0 ? stdout.trim() : undefined;
}

/** All that the program printed when it ended with anything but 0. Throws when there is no such program. */
export function findProblem(cwd: string, program: string, args: readonly string[]): string | undefined {
  const { status, signal, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (error !== undefined) throw error;
  return status === 0
    ? undefined
    : `${stdout}${stderr}`.trim() || `${program} ended with ${signal ?? status}`;
}
