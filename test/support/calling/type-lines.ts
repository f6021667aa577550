/** Lines of a page of documentation, typed into a shell. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { PROGRAM } from './run-cli.js';

/** What the shell printed, and its exit code. */
export type Typed = { stdout: string; stderr: string; code: number | null };

/** Ends what the lines have started. */
const END = "trap 'kill $(jobs -p); wait' EXIT\n";

/**
 * Runs the lines in `dir`, where `attest` is the program under test. Ends at the first line that fails.
 *
 * @param own the page's example values, and what this machine has in their place. Throws Error if the lines lack one
 * @param env settings of the shell, beside PATH and HOME
 */
export async function typeLines(
  lines: string,
  { dir, own, env }: { dir: string; own: Record<string, string>; env: Record<string, string> },
): Promise<Typed> {
  const bin = join(dir, 'bin');
  await mkdir(bin, { recursive: true });
  const attest = join(bin, 'attest');
  await writeFile(attest, `#!/bin/sh\nexec ${[process.execPath, ...PROGRAM].join(' ')} "$@"\n`);
  await chmod(attest, 0o755);
  const typed = Object.entries(own).reduce((script, [example, value]) => {
    if (!script.includes(example)) throw new Error(`the lines lack ${example}`);
    return script.replaceAll(example, value);
  }, lines);
  const shell = spawn('bash', ['-euo', 'pipefail', '-c', `${END}${typed}`], {
    cwd: dir,
    env: { PATH: [bin, process.env.PATH].join(delimiter), HOME: dir, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, 'close'),
  ]);
  return { stdout, stderr, code };
}
