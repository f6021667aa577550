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
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', source]);
  return stdout;
}
