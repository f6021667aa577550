/** Runs the command of `attest run`. */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import type { Env } from '../../../config/settings.js';

/** How a command ended, as shells report it: 127 not found, 126 not executable, 128 and the signal's number if killed. */
export type CommandEnd = {
  readonly exitCode: number;
  /** The signal that killed it. */
  readonly signal?: NodeJS.Signals | undefined;
  /** Why it could not be started. */
  readonly problem?: string | undefined;
  /** The signal that this process received meanwhile. */
  readonly interruptedBy?: NodeJS.Signals | undefined;
};

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** The terminal sends these to the command as well, which is in the same process group. */
const FROM_TERMINAL = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT']);

const STANDARD_INPUT = 0;

/** Runs a command with this process's standard streams, and passes signals on to it. Never rejects. */
export async function runCommand(env: Env, [program = '', ...args]: readonly string[]): Promise<CommandEnd> {
  let interruptedBy: NodeJS.Signals | undefined;
  const child = spawn(program, args, { env, stdio: 'inherit' });
  const pass = (signal: NodeJS.Signals) => {
    interruptedBy = signal;
    if (!FROM_TERMINAL.has(signal) || !isatty(STANDARD_INPUT)) child.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, pass);
  try {
    return await new Promise<CommandEnd>((resolve) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        // Also that a signal could not be sent.
        if (child.pid === undefined) resolve(notStarted(program, error));
      });
      child.once('exit', (code, signal) => {
        const exitCode = code ?? exitCodeOf(signal ?? 'SIGKILL');
        resolve({ exitCode, signal: signal ?? undefined, interruptedBy });
      });
    });
  } finally {
    for (const signal of FORWARDED) process.off(signal, pass);
  }
}

/** The exit code that shells report for a signal. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

function notStarted(program: string, { code, message }: NodeJS.ErrnoException): CommandEnd {
  if (code === 'ENOENT') return { exitCode: 127, problem: `${program}: command not found` };
  return { exitCode: 126, problem: `${program} cannot be run: ${message.replace(/^spawn \S+ /, '')}` };
}
