/** `attest` in a process of its own, in a folder, with standard input and signals. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';
import { PROGRAM } from '../../support/calling/run-cli.js';
import { until } from '../../support/until.js';

type Options = { cwd: string; env: Record<string, string>; input?: string };

/** Starts the program until the test ends; `says` waits for something on standard error. */
function startAttest(t: Test, args: readonly string[], { cwd, env, input }: Options) {
  const child = spawn(process.execPath, [...PROGRAM, ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin.on('error', () => {});
  if (input !== undefined) child.stdin.end(input);
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    said += piece;
  });
  const ended = Promise.all([text(child.stdout), once(child, 'close')]).then(([stdout, [code]]) => ({
    stdout,
    code,
    stderr: said,
  }));
  return { child, ended, says: (what: RegExp) => until(`${what} is said`, () => what.test(said)) };
}

/** Runs it to its end. */
export async function runAttest(t: Test, args: readonly string[], { input = '', ...options }: Options) {
  return await startAttest(t, args, { input, ...options }).ended;
}
