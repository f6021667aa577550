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
  /** Ends it all. */
  stop: AbortSignal;
};

/**
 * Builds and starts a service, and does so again after every change; a service whose build fails is not restarted.
 * Returns when stopped, and after the service has ended.
 */
export async function develop({ folders, build, serve, stdio, print, stop }: Development): Promise<void> {
  const changes = watchFolders(folders);
  let building: Running | undefined;
  let service: Running | undefined;
  const end = () => {
    changes.close();
    building?.stop();
  };
  stop.addEventListener('abort', end);
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
    stop.removeEventListener('abort', end);
    changes.close();
    await service?.stop();
  }
}

type Running = { ended: Promise<string>; stop(): Promise<unknown> };

/** In a process group of its own, so that a Ctrl-C reaches it once: through `stop`. */
function run([program, ...args]: Command, stdio: Development['stdio']): Running {
  const child = spawn(program, args, { stdio, detached: true });
  const ended = once(child, 'exit').then(([code, signal]) => String(code ?? signal));
  const stop = () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGTERM');
    return ended;
  };
  return { ended, stop };
}
