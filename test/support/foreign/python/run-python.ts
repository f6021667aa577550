import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Runs a Python program, with `modules` as a folder that it imports from; returns its standard output. */
export type RunPython = (
  args: readonly string[],
  options?: { cwd?: string; modules?: string; env?: Record<string, string> },
) => Promise<string>;

/** As `RunPython`, by this interpreter. Nothing of this process's environment takes part but PATH. */
export async function runPython(
  python: string,
  args: Parameters<RunPython>[0],
  { cwd, modules, env }: Parameters<RunPython>[1] = {},
): Promise<string> {
  const path = modules === undefined ? {} : { PYTHONPATH: modules };
  const { stdout } = await promisify(execFile)(python, args, {
    cwd,
    env: { PATH: process.env.PATH, ...env, ...path },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
