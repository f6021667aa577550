// Runs tap with one Postgres and one nats-server for all test files; arguments are passed on to tap.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { clearAbandoned, type LocalServers, startLocalServers } from './local-servers.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

let interrupted: NodeJS.Signals | undefined;
let interrupt: (signal: NodeJS.Signals) => void = () => {};
for (const signal of SIGNALS) {
  process.on(signal, () => {
    interrupted = signal;
    interrupt(signal);
  });
}

await clearAbandoned();
const servers = await startLocalServers();
try {
  process.exitCode = interrupted === undefined ? await runTap(servers) : 128 + constants.signals[interrupted];
} finally {
  await servers.stop();
}

/** Tap leads its own process group, so that it gets each signal once and its test processes get it too. */
async function runTap({ databaseUrl, natsUrl }: LocalServers): Promise<number> {
  const tap = join(dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist/esm/run.mjs');
  const strict = process.env.CI ? ['--fail-skip', '--fail-todo', '--fail-only'] : [];
  const child = spawn(process.execPath, [tap, 'run', ...strict, ...process.argv.slice(2)], {
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, TEST_DATABASE_URL: databaseUrl, TEST_NATS_URL: natsUrl },
  });
  interrupt = (signal) => void process.kill(-child.pid!, signal);
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  interrupt = () => {};
  const deadly = signal ?? interrupted;
  return deadly === undefined ? (code ?? 1) : 128 + constants.signals[deadly];
}
