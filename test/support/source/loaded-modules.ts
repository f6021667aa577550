import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const HOOK = `import { writeSync } from 'node:fs';
export async function load(url, context, next) {
  writeSync(1, url + String.fromCharCode(10));
  return next(url, context);
}`;

/** The modules that a program loads, a line each. */
export async function resolvedBy(program: string): Promise<string> {
  const hook = `data:text/javascript,${encodeURIComponent(HOOK)}`;
  const source = `import { register } from 'node:module';\nregister(${JSON.stringify(hook)});\n${program}`;
  return (await runProgram(source)).stdout;
}

/** Runs the source of a module in a process of its own. Rejects if it fails. */
export function runProgram(source: string): Promise<{ stdout: string; stderr: string }> {
  return promisify(execFile)(process.execPath, ['--input-type=module', '-e', source]);
}
