/** `attest` in a process of its own, in a folder, with standard input and signals. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Test } from 'tap';
import { PROGRAM } from '../../support/calling/run-cli.js';

type Options = { cwd: string; env: Record<string, string>; input?: string };

/** Starts the program until the test ends; `lines` counts what it has printed, `said` is what it said. */
export function startAttest(t: Test, args: readonly string[], { cwd, env, input }: Options) {
  const child = spawn(process.execPath, [...PROGRAM, ...args], {
    cwd,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin.on('error', () => {});
  if (input !== undefined) child.stdin.end(input);
  let [printed, said] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    printed += piece;
  });
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    said += piece;
  });
  const ended = once(child, 'close').then(([code]) => ({ stdout: printed, code, stderr: said }));
  return { child, ended, said: () => said, lines: () => printed.split('\n').length - 1 };
}

/** Runs it to its end. */
export async function runAttest(t: Test, args: readonly string[], { input = '', ...options }: Options) {
  return await startAttest(t, args, { input, ...options }).ended;
}

/** The IDs that a run printed, in order. */
export function idsOf(stdout: string): string[] {
  return stdout.match(/^sub_\w+/gm) ?? [];
}
