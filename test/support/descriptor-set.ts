/** The public API as a FileDescriptorSet, and what code generators make of it. */
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = createRequire(import.meta.url).resolve('attestation-service/package.json');
const BUF = join(dirname(createRequire(import.meta.url).resolve('@bufbuild/buf/package.json')), 'bin/buf');

/** Runs the `buf` of this checkout in a folder; rejects with what it printed when it fails. */
export async function runBuf(
  args: readonly string[],
  { cwd = dirname(ROOT), path = process.env.PATH }: { cwd?: string; path?: string | undefined } = {},
): Promise<string> {
  const env = { ...process.env, PATH: path };
  return (await promisify(execFile)(process.execPath, [BUF, ...args], { cwd, env })).stdout;
}

/** Writes the descriptor of the API to a file. */
export async function writeDescriptorSet(file: string): Promise<void> {
  await runBuf(['build', '--path', 'proto/attestation/v1', '--as-file-descriptor-set', '-o', file]);
}
