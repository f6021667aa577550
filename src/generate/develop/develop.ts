import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { watchFolders } from './watch-folders.js';

/** A program and its arguments. */
type Command = readonly [program: string, ...args: string[]];

type Development = {
  /** Where a change leads to a build. */
  folders: readonly string[];
  build: Command;
  /** Started after each build that succeeded; ends on SIGTERM. */
  serve: Command;
  stdio: 'inherit' | 'ignore';
  print: (line: string) => void;
  /** Stops the build and the service. */
  stop: AbortSignal;
  /** Then ends them at once: with a second SIGTERM, and SIGKILL if that has no effect. */
  force: AbortSignal;
};

const KILL_AFTER_MS = 1_000;

/**
 * Builds and starts a service, and does so again after every change; a service whose build fails is not restarted.
 * Returns when stopped, and after the service has ended.
 */
export async function develop(options: Development): Promise<void> {
  const { folders, build, serve, stdio, print, stop, force } = options;
  const changes = watchFolders(folders);
  let building: Running | undefined;
  let service: Running | undefined;
  const end = () => {
    changes.close();
    building?.stop();
  };
  stop.addEventListener('abort', end);
  const forceEnd = () => {
    building?.forceEnd();
    service?.forceEnd();
  };
  force.addEventListener('abort', forceEnd);
  try {
    while (!stop.aborted) {
      building = run(build, stdio);
      const isBuilt = (await building.ended) === '0';
      if (stop.aborted) break;
      if (isBuilt) {
        await service?.stop();
        if (stop.aborted) break;
        service = run(serve, stdio);
        void service.ended.then((code) => print(`the service ended with ${code}`));
      } else {
        print('the build failed: the service is not restarted');
      }
      await changes.next();
    }
  } finally {
    changes.close();
    await service?.stop();
    stop.removeEventListener('abort', end);
    force.removeEventListener('abort', forceEnd);
  }
}

type Running = { ended: Promise<string>; stop(): Promise<unknown>; forceEnd(): void };

/** In a process group of its own, so that a Ctrl-C reaches it once: through `stop`. */
function run([program, ...args]: Command, stdio: Development['stdio']): Running {
  const child = spawn(program, args, { stdio, detached: true });
  const ended = once(child, 'exit').then(([code, signal]) => String(code ?? signal));
  const send = (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, signal);
  };
  return {
    ended,
    stop: () => {
      send('SIGTERM');
      return ended;
    },
    forceEnd: () => {
      send('SIGTERM');
      setTimeout(() => send('SIGKILL'), KILL_AFTER_MS).unref();
    },
  };
}
