/**
 * Runs one program as a child process in a process group of its own, with bounds on its time, its silence, its output and
 * what it puts on disk. Whatever ends it, the whole group has ended when the call returns.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { DestinationError } from '../destination.js';
import { measureDirectory } from './measure-directory.js';

export type Command = {
  readonly file: string;
  readonly args: readonly string[];
  /** All of the child's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Its standard input. */
  readonly input?: AsyncIterable<Uint8Array> | undefined;
  readonly signal: AbortSignal;
  /** The name of the command's work in errors: `the fetch`. */
  readonly what: string;
  /** Stall timeout: it neither reads input, nor writes output, nor grows `disk`. */
  readonly stallMs: number;
  readonly totalMs: number;
  /** A directory that it may fill to a bound. */
  readonly disk?: { readonly path: string; readonly maxBytes: number } | undefined;
};

/** How a program ended. Of each output only the end is kept. */
export type CommandResult = { readonly ok: boolean; readonly stdout: string; readonly stderr: string };

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const MAX_OUTPUT_LENGTH = 65_536;
const WATCH_INTERVAL_MS = 100;

/** Rejects with `DestinationError` if the program is missing, is aborted or exceeds a bound. */
export async function runCommand(command: Command): Promise<CommandResult> {
  const { file, args, env, cwd, signal, what } = command;
  if (signal.aborted) throw aborted(what, signal);
  const child = spawn(file, args, { env, cwd, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  const closed = watchClose(child, command);
  const watch = watchBounds(command, child);
  const stdout = collect(child.stdout, watch.touch);
  const stderr = collect(child.stderr, watch.touch);
  const fed = feed(command, child, watch);
  try {
    const code = await closed;
    await fed;
    await watch.disk();
    if (watch.failure() !== undefined) throw watch.failure();
    return { ok: code === 0, stdout: stdout(), stderr: stderr() };
  } finally {
    watch.end();
  }
}

function aborted(what: string, signal: AbortSignal): DestinationError {
  return new DestinationError(`${what} was aborted`, { cause: signal.reason });
}

/** Resolves with the exit code, undefined after a signal, once nothing holds the outputs open any more. */
function watchClose(child: Child, command: Command): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    child.once('close', (code) => resolve(code ?? undefined));
    child.once('error', (cause: NodeJS.ErrnoException) => {
      reject(new DestinationError(explainStart(command, cause), { cause }));
    });
  });
}

function explainStart({ file, cwd }: Command, { code }: NodeJS.ErrnoException): string {
  if (!existsSync(cwd)) return 'a temporary directory of the service was deleted while it was in use';
  if (code !== 'ENOENT') return `the program ${file} cannot be run (${code})`;
  const name = file === 'ssh' ? 'openssh-client' : file;
  return `the service's machine has no program ${file}: its operator must install the package ${name}`;
}

type Watch = {
  touch(): void;
  stop(error: Error): void;
  failure(): Error | undefined;
  /** Checks the disk's bound. */
  disk(): Promise<void>;
  end(): void;
};

function watchBounds(command: Command, child: Child): Watch {
  const { what, signal, stallMs, totalMs } = command;
  const startedAt = performance.now();
  let touchedAt = startedAt;
  let failure: Error | undefined;
  const touch = () => {
    touchedAt = performance.now();
  };
  let closed = false;
  child.once('close', () => {
    closed = true;
  });
  const stop = (error: Error) => {
    failure ??= error;
    if (!closed) killGroup(child);
  };
  const abort = () => stop(aborted(what, signal));
  signal.addEventListener('abort', abort, { once: true });
  const disk = watchDisk(command, { touch, stop });
  const timer = setInterval(() => {
    const now = performance.now();
    if (now - startedAt > totalMs) stop(tooLong(what, totalMs));
    else if (now - touchedAt > stallMs) stop(stalled(what, stallMs));
    else void disk();
  }, WATCH_INTERVAL_MS);
  const end = () => {
    clearInterval(timer);
    signal.removeEventListener('abort', abort);
  };
  return { touch, stop, failure: () => failure, disk, end };
}

function watchDisk(
  { what, disk }: Command,
  { touch, stop }: Pick<Watch, 'touch' | 'stop'>,
): () => Promise<void> {
  let last = 0;
  return async () => {
    if (disk === undefined) return;
    const bytes = await measureDirectory(disk.path);
    if (bytes !== last) touch();
    last = bytes;
    if (bytes > disk.maxBytes) stop(tooLarge(what, disk.maxBytes));
  };
}

function stalled(what: string, stallMs: number): DestinationError {
  return new DestinationError(`${what} made no progress for ${stallMs / 1000} s`);
}

function tooLong(what: string, totalMs: number): DestinationError {
  return new DestinationError(`${what} took longer than ${totalMs / 1000} s`);
}

function tooLarge(what: string, maxBytes: number): DestinationError {
  const mebibytes = Math.floor(maxBytes / 1024 ** 2);
  return new DestinationError(
    `${what} needs more than ${mebibytes} MiB: use a repository or branch with smaller files, or a server that supports partial clones`,
  );
}

/** The group is the child's own, and its number is not given away before the child is closed. */
function killGroup(child: Child): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The process has exited; its streams are about to close.
  }
}

/** Keeps the end of an output. */
function collect(stream: Readable, touch: () => void): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    touch();
    text = (text + chunk).slice(-MAX_OUTPUT_LENGTH);
  });
  return () => text;
}

/** Gives a child its input. A child that ends without reading it says why itself. */
async function feed({ input }: Command, child: Child, { touch, stop }: Watch): Promise<void> {
  // A child that could not be started has no open input.
  child.stdin.on('error', () => {});
  if (input === undefined) {
    child.stdin.end();
    return;
  }
  let failure: unknown;
  const counted = async function* () {
    try {
      for await (const chunk of input) {
        touch();
        yield chunk;
      }
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  await pipeline(counted, child.stdin).catch(() => {});
  if (failure !== undefined) stop(failure as Error);
}
