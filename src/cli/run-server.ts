import type { Command } from 'commander';
import type { RunOptions } from '../server/process/run.js';
import type { Ready } from '../server/process/start-process.js';
import type { Cli } from './cli.js';

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Supervisors kill after 30 s. What was acknowledged is stored by then, and what is under way is taken up by others. */
const SHUTDOWN_TIMEOUT_MS = 25_000;

/** Flags of server commands that stand for settings. */
export type ServerFlags = { port?: string; opsPort?: string; dataDir?: string; json?: boolean };

/** Adds the flags of a server command that serves the API. */
export function addApiFlags(command: Command): Command {
  return addServerFlags(command.option('--port <port>', 'port of the API, 0 for any free one (PORT, 8080)'));
}

/** Adds the flags that every server command has. */
export function addServerFlags(command: Command): Command {
  return command
    .option('--ops-port <port>', 'port of health checks and metrics (OPS_PORT, 9090)')
    .option('--data-dir <dir>', 'where files are kept (DATA_DIR, .data)')
    .option('--json', 'print the addresses as one line of JSON');
}

/** The addresses of a process that is up, as `--json` prints them. */
export function readyJson(
  { baseUrl, verifyUrl, opsUrl, adminUrl }: Ready,
  more: Record<string, string> = {},
): string {
  const addresses = { base_url: baseUrl, verify_url: verifyUrl, ops_url: opsUrl, admin_url: adminUrl };
  return JSON.stringify({ ...addresses, ...more });
}

/**
 * Runs a server until a signal asks it to stop and it has; a second signal ends the process at once. It ends within its
 * grace time, whatever some part of it waits for.
 */
export async function runServer(
  cli: Cli,
  run: (options: RunOptions) => Promise<void>,
  onReady: RunOptions['onReady'],
): Promise<void> {
  const stopping = new AbortController();
  let forcedExit: NodeJS.Timeout | undefined;
  const stop = (signal: NodeJS.Signals) => {
    if (stopping.signal.aborted) process.exit(signal === 'SIGINT' ? 130 : 143);
    cli.stderr.write('stopping; once more to end at once\n');
    stopping.abort();
    forcedExit = setTimeout(() => {
      cli.stderr.write(
        `not everything has ended within ${SHUTDOWN_TIMEOUT_MS / 1000} s; the process ends now\n`,
      );
      process.exit(1);
    }, SHUTDOWN_TIMEOUT_MS).unref();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, stop);
  try {
    await run({
      stop: stopping.signal,
      // A start that is interrupted comes to its end first; nobody is to be told of an address that is about to go.
      onReady: (ready) => {
        if (!stopping.signal.aborted) onReady(ready);
      },
    });
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, stop);
    clearTimeout(forcedExit);
  }
}
