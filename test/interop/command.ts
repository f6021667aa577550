import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';

/** How a command ended, and all that it printed. */
export type Said = { code: number | null; output: string };

/** Where and with what a command runs. */
export type Surroundings = { cwd?: string; env?: Record<string, string> };

/** Runs a command to its end. */
export async function run(
  command: string,
  args: readonly string[],
  { cwd, env = {} }: Surroundings = {},
): Promise<Said> {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on('close', resolve);
    child.on('error', reject);
  });
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, output: `${stdout}${stderr}` };
}

/** Runs a command that has to succeed. Throws what it printed when it does not. @returns what it printed */
export async function runOrThrow(
  command: string,
  args: readonly string[],
  surroundings: Surroundings = {},
): Promise<string> {
  const { code, output } = await run(command, args, surroundings);
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`);
  return output;
}
