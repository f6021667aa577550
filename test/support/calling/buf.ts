/** The `buf` of this checkout's packages, as users run it. */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const BUF = join(dirname(createRequire(import.meta.url).resolve('@bufbuild/buf/package.json')), 'bin/buf');

/** Runs it in a folder; rejects with what it printed when it fails. */
export async function runBuf(
  args: readonly string[],
  { cwd, path = process.env.PATH }: { cwd?: string; path?: string | undefined } = {},
): Promise<string> {
  const env = { ...process.env, PATH: path };
  return (await promisify(execFile)(process.execPath, [BUF, ...args], { cwd, env })).stdout;
}
