import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { Cli, Input, Output } from '../../../src/cli/cli.js';
import { runProgram } from '../../../src/cli/program.js';

/** How a command ended. */
export type Ended = { code: number | null; signal?: NodeJS.Signals | null; stdout: string; stderr: string };

const isCompiled = import.meta.url.endsWith('.js');
/** Arguments for node that start the program. */
export const PROGRAM = [
  ...(isCompiled ? [] : ['--import', 'tsx']),
  fileURLToPath(new URL(isCompiled ? '../../../attest/main.js' : '../../../src/main.ts', import.meta.url)),
];

/** Runs the program in a process of its own, with nothing in its environment but `env` and PATH. */
export async function runProcess(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const child = spawn(process.execPath, [...PROGRAM, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.on('close', (code, signal) => resolve([code, signal]));
  });
  const [stdout, stderr, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, signal, stdout, stderr };
}

/**
 * Runs a command in this process, which is quicker; `terminal` makes standard output and error one of that many
 * columns, `typed` makes standard input one that this is typed at. `piped` is standard input that is none.
 */
export async function runHere(
  args: readonly string[],
  {
    env = {},
    terminal,
    typed,
    piped,
    now = () => new Date(),
  }: { env?: Cli['env']; terminal?: number; typed?: string; piped?: string; now?: () => Date } = {},
): Promise<Ended> {
  const stdout = collect(terminal);
  const stderr = collect(terminal);
  const input = typed ?? piped;
  const stdin: Input = Object.assign(Readable.from(input === undefined ? [] : [input]), {
    isTTY: typed !== undefined,
  });
  const cli: Cli = { env, stdin, stdout, stderr, now, self: 'attest', exitCode: 0 };
  await runProgram(cli, args);
  return { code: cli.exitCode, stdout: stdout.text(), stderr: stderr.text() };
}

function collect(columns?: number): Output & { text(): string } {
  const pieces: Buffer[] = [];
  const stream = new Writable({
    write: (piece: Buffer, _, done) => {
      pieces.push(piece);
      done();
    },
  });
  const terminal = columns === undefined ? {} : { isTTY: true, columns };
  return Object.assign(stream, terminal, { text: () => Buffer.concat(pieces).toString('utf8') });
}
