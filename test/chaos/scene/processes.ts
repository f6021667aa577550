/** The processes of the service: each is started again when it has ended, as a supervisor does. */
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import { type LogLine, type ServiceProcess, startService } from '../../support/servers/installation.js';

export type Role = 'api' | 'worker';

export type Supervised = {
  name: string;
  role: Role;
  /** Undefined while it is down or starting. */
  up(): ServiceProcess | undefined;
  /** Waits until it is ready. */
  start(): Promise<void>;
  /** SIGKILL; it stays down until `start`. */
  kill(): Promise<void>;
  /** SIGTERM; it stays down until `start`. Throws unless it ends cleanly and in time. */
  stop(): Promise<void>;
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
};

/** What a process holds: resident memory in MiB, and descriptors. */
export type Holdings = { name: string; rssMib: number; descriptors: number };

type State = {
  up?: ServiceProcess | undefined;
  wanted: boolean;
  /** It is not to run again, whoever asks. */
  closed: boolean;
  hasRun: boolean;
  starting?: Promise<void> | undefined;
};

/** The drain of an API takes 20 s at most. */
const STOP_MS = 40_000;
const RETRY_MS = 300;

/**
 * Starts it when told to.
 *
 * @param what what it logs is added to `logFile`
 * @param report told of an end that nobody asked for
 */
export function supervise(
  what: { name: string; role: Role; env: Record<string, string>; logFile: string },
  report: (problem: string) => void,
  hooks: ShutdownHooks,
): Supervised {
  const { name, role, env, logFile } = what;
  const onLine = (line: LogLine) => appendFileSync(logFile, `${JSON.stringify(line)}\n`);
  const state: State = {
    wanted: false,
    closed: false,
    hasRun: false,
  };
  const close = () => {
    state.closed = true;
    state.wanted = false;
  };
  const teardown = (stop: () => Promise<unknown>) =>
    hooks.add(() => {
      close();
      return stop();
    });
  const tryToStart = async () => {
    while (state.wanted) {
      const started = await startService({ teardown }, role, env, onLine).catch((error: Error) => error);
      if (started instanceof Error) {
        // Without Postgres no process starts: its supervisor tries again. Before the first fault nothing explains it.
        if (!state.hasRun) throw started;
        await delay(RETRY_MS);
        continue;
      }
      state.hasRun = true;
      state.up = started;
      void started.exited.then(({ code, signal }) => {
        if (state.up !== started) return;
        state.up = undefined;
        report(`${name} ended by itself with ${code ?? signal}: ${JSON.stringify(started.lines.slice(-3))}`);
        start().catch(() => {});
      });
      return;
    }
  };
  const start = () => {
    state.wanted = !state.closed;
    if (state.closed || state.up !== undefined) return Promise.resolve();
    state.starting ??= tryToStart().finally(() => {
      state.starting = undefined;
    });
    return state.starting;
  };
  const takeDown = async () => {
    state.wanted = false;
    await state.starting?.catch(() => {});
    const { up } = state;
    state.up = undefined;
    return up;
  };
  hooks.add(async () => close());
  return {
    name,
    role,
    up: () => state.up,
    start,
    kill: async () => (await takeDown())?.kill(),
    stop: async () => {
      const up = await takeDown();
      if (up !== undefined) await stopInTime(name, up);
    },
    signal: (signal) => {
      if (state.up !== undefined) process.kill(state.up.pid, signal);
    },
  };
}

async function stopInTime(name: string, up: ServiceProcess): Promise<void> {
  const late = Symbol();
  const timer = new AbortController();
  const stopped = up.stop();
  stopped.catch(() => {});
  const ended = await Promise.race([stopped, delay(STOP_MS, late, { signal: timer.signal })]);
  timer.abort();
  if (ended !== late) return;
  await up.kill();
  throw new Error(`${name} did not end within ${STOP_MS / 1000} s of SIGTERM`);
}

/** Undefined where there is no /proc, or no such process. */
export function holdingsOf({ name, up }: Supervised): Holdings | undefined {
  const pid = up()?.pid;
  if (pid === undefined) return undefined;
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    const descriptors = readdirSync(`/proc/${pid}/fd`).length;
    return { name, rssMib: Math.round(Number(kib) / 1024), descriptors };
  } catch {
    return undefined;
  }
}
