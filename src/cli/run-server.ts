import cluster from 'node:cluster';
import type { Command } from 'commander';
import type { Ready } from '../server/process/addresses.js';
import type { RunOptions } from '../server/process/run.js';
import type { Cli } from './cli.js';

const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Below the 30 s after which supervisors kill. Acknowledged submissions are stored; other processes redo open jobs. */
const SHUTDOWN_TIMEOUT_MS = 25_000;

/** Flags of server commands; each overrides a setting. */
export type ServerFlags = {
  port?: string;
  processes?: string;
  opsPort?: string;
  dataDir?: string;
  json?: boolean;
};

/** Adds the server flags and `--port`. */
export function addApiFlags(command: Command): Command {
  return addServerFlags(
    command.option('--port <port>', 'port of the API, 0 for a free one (PORT, default: 8080)'),
  );
}

/** Adds `--processes`; `byDefault` is its default in words. */
export function addProcessesFlag(command: Command, byDefault: string): Command {
  return command.option(
    '--processes <n>',
    `API processes that share the port (API_PROCESSES, default: ${byDefault})`,
  );
}

/** Adds the flags shared by all server commands. */
export function addServerFlags(command: Command): Command {
  return command
    .option(
      '--ops-port <port>',
      'port of health checks and metrics, 0 for a free one (OPS_PORT, default: 9090)',
    )
    .option('--data-dir <dir>', 'directory for data and keys (DATA_DIR, default: .data)')
    .option('--json', 'print the addresses as one line of JSON when ready');
}

/** The addresses of a running server as the JSON that `--json` prints. */
export function readyJson(
  { baseUrl, verifyUrl, opsUrl, adminUrl, dashboardUrl }: Ready,
  more: Record<string, string> = {},
): string {
  return JSON.stringify({
    base_url: baseUrl,
    verify_url: verifyUrl,
    ops_url: opsUrl,
    admin_url: adminUrl,
    dashboard_url: dashboardUrl,
    ...more,
  });
}

/**
 * Runs a server until SIGINT or SIGTERM and shuts it down gracefully. A second signal exits at once; so does a shutdown
 * that takes longer than 25 s, with exit code 1.
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
    // The process that started this one says it for all.
    if (cluster.isPrimary) cli.stderr.write('shutting down; repeat the signal to exit at once\n');
    stopping.abort();
    forcedExit = setTimeout(() => {
      cli.stderr.write(`shutdown timed out after ${SHUTDOWN_TIMEOUT_MS / 1000} s; exiting now\n`);
      process.exit(1);
    }, SHUTDOWN_TIMEOUT_MS).unref();
  };
  for (const signal of STOP_SIGNALS) process.on(signal, stop);
  try {
    await run({
      stop: stopping.signal,
      // A signal during startup takes effect after it; the addresses are about to close, so they are not printed.
      onReady: (ready) => {
        if (!stopping.signal.aborted) onReady(ready);
      },
    });
  } finally {
    for (const signal of STOP_SIGNALS) process.off(signal, stop);
    clearTimeout(forcedExit);
  }
}
