// Runs tap with one Postgres and one nats-server for all test files; arguments are passed on to tap. Ends with a line
// that counts the assertions. Where CI is set, a skipped test fails the run.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { clearAbandoned, type LocalServers, startLocalServers } from './local-servers.js';
import { type Counts, findCounts, isTelling, printCounts } from './tap-output.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Of a run of tap. There are no counts when it was ended early or only asked for help. */
type Outcome = { code: number; counts: Counts | undefined };

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
  const { code, counts } =
    interrupted === undefined ? await runTap(servers) : { code: signalled(interrupted), counts: undefined };
  process.exitCode = code === 0 && process.env.CI && counts?.skipped ? 1 : code;
  if (counts !== undefined) process.stdout.write(`${printCounts(counts)}\n`);
} finally {
  await servers.stop();
}

function signalled(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

async function runTap(servers: LocalServers): Promise<Outcome> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-tap-'));
  try {
    return process.stdout.isTTY ? await showTap(servers, join(dir, 'output')) : await shortenTap(servers);
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** For a person, who sees tap's own report. */
async function showTap(servers: LocalServers, path: string): Promise<Outcome> {
  const code = await findEnd(startTap(servers, 'inherit', `--output-file=${path}`));
  const lines = (await readFile(path, 'utf8').catch(() => '')).split('\n');
  return { code, counts: lines.map(findCounts).findLast((counts) => counts !== undefined) };
}

/** For a file, which gets what tells something of tap's output. */
async function shortenTap(servers: LocalServers): Promise<Outcome> {
  const child = startTap(servers, 'pipe', '--reporter=tap');
  const end = findEnd(child);
  let counts: Counts | undefined;
  for await (const line of createInterface({ input: child.stdout!, crlfDelay: Number.POSITIVE_INFINITY })) {
    counts = findCounts(line) ?? counts;
    if (isTelling(line)) process.stdout.write(`${line}\n`);
  }
  return { code: await end, counts };
}

/** Tap leads its own process group, so that it gets each signal once and its test processes get it too. */
function startTap(servers: LocalServers, stdout: 'inherit' | 'pipe', output: string): ChildProcess {
  const tap = join(dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist/esm/run.mjs');
  const strict = process.env.CI ? ['--fail-only'] : [];
  const child = spawn(process.execPath, [tap, 'run', output, ...strict, ...process.argv.slice(2)], {
    detached: true,
    stdio: ['ignore', stdout, 'inherit'],
    env: { ...process.env, TEST_DATABASE_URL: servers.databaseUrl, TEST_NATS_URL: servers.natsUrl },
  });
  interrupt = (signal) => void process.kill(-child.pid!, signal);
  return child;
}

async function findEnd(child: ChildProcess): Promise<number> {
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  interrupt = () => {};
  const deadly = signal ?? interrupted;
  return deadly === undefined ? (code ?? 1) : signalled(deadly);
}
