import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { EmbeddedError } from './embedded-error.js';
import { type StopSteps, stopBySignals } from './stop-process.js';

/** The logger of a server's output and our messages about it; a pino logger fits. */
export interface ServerLog {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The user that runs a server, if not the user of this process. */
export interface ServerUser {
  uid: number;
  gid: number;
}

interface ServerExit {
  /** True after `stop`; false if the server exited unexpectedly. */
  expected: boolean;
  code: number | null;
  signal: NodeJS.Signals | null;
  /** The newest lines of its log, at most 50. */
  lastLines: string[];
}

/** A running local server. Only `stop` stops it. */
export interface ServerProcess {
  pid: number;
  /** Resolves when the process has ended; never rejects. */
  exited: Promise<ServerExit>;
  /** Stops the server cleanly and waits for its end. May be called again. */
  stop(): Promise<void>;
}

interface ServerCommand {
  name: string;
  file: string;
  args: string[];
  cwd: string;
  user?: ServerUser | undefined;
  stopSteps: StopSteps;
  levelOf(line: string): keyof ServerLog;
  /** Called for each log line until it returns true, which means that the server accepts connections. */
  isReady(line: string): boolean;
  /** The error of a server that exited before it was ready. */
  explainFailure(lastLines: string[]): EmbeddedError;
}

const MAX_LAST_LINES = 50;

/**
 * Starts a server and waits until it is ready. It gets its own session, so that Ctrl-C in the terminal reaches only
 * this process, which stops it when its own work is done; and an empty environment, which keeps our secrets from it.
 */
export async function startServerProcess(
  { log }: { log: ServerLog },
  command: ServerCommand,
): Promise<ServerProcess> {
  const child = spawn(command.file, command.args, {
    cwd: command.cwd,
    env: { LC_ALL: 'C', TZ: 'UTC' },
    ...command.user,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const lastLines: string[] = [];
  let stopping = false;
  const exited = watchExit(child).then((exit) => ({ ...exit, expected: stopping, lastLines }));
  await watchLines({ log, child, exited, lastLines }, command);
  return {
    pid: child.pid!,
    exited,
    stop: async () => {
      stopping = true;
      await stopBySignals({ exited, kill: (signal) => void child.kill(signal) }, command.stopSteps);
    },
  };
}

/** Watches the exit. Also sends SIGINT to the server if this process exits without having stopped it. */
function watchExit(child: ChildProcess): Promise<Pick<ServerExit, 'code' | 'signal'>> {
  const askToStop = () => void child.kill('SIGINT');
  process.once('exit', askToStop);
  return new Promise<Pick<ServerExit, 'code' | 'signal'>>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal }));
    child.on('error', () => resolve({ code: null, signal: null }));
  }).finally(() => process.off('exit', askToStop));
}

function watchLines(
  {
    log,
    child,
    exited,
    lastLines,
  }: { log: ServerLog; child: ChildProcess; exited: Promise<ServerExit>; lastLines: string[] },
  command: ServerCommand,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let ready = false;
    createInterface({ input: child.stderr! }).on('line', (line) => {
      if (lastLines.push(line) > MAX_LAST_LINES) lastLines.shift();
      log[command.levelOf(line)]({ server: command.name }, line);
      if (!ready && command.isReady(line)) {
        ready = true;
        resolve();
      }
    });
    child.once('error', (cause) => {
      reject(new EmbeddedError('start_failed', `Cannot run ${command.file}: ${cause.message}.`, { cause }));
    });
    void exited.then(() => reject(command.explainFailure(lastLines)));
  });
}
