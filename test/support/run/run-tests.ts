/** Runs tap over compiled tests. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { constants, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { clearAbandoned, type LocalServers, startLocalServers } from '../servers/local-servers.js';
import { filesLacking, type Lacking, printLacking } from './lacking.js';
import { type Counts, findCounts, findTime, isTelling, printCounts } from './tap-output.js';
import type { Times } from './times.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

const WITHOUT_HOOKS = new URL('without-hooks.js', import.meta.url).href;

/** Of a run of tap. There are no counts when it was ended early or only asked for help. */
type Outcome = { code: number; counts: Counts | undefined; times: Times };

/** The arguments of tap, and the environment that tests get beside this process's. */
type Run = { args: readonly string[]; env: Record<string, string> };

let interrupted: NodeJS.Signals | undefined;
let interrupt: (signal: NodeJS.Signals) => void = () => {};

export type RunOptions = {
  /** Whether all tests share one Postgres and one nats-server; without, a test that wants some starts its own. */
  servers: boolean;
  /** What the tests that are left out lack. */
  lacking?: readonly Lacking[];
  /** Gets the times of a whole run's test files, and returns lines for its end. */
  keepTimes?: (times: Times) => string[];
};

/**
 * Runs tap with these arguments, prints its report, the tests that were left out and a line that counts the assertions,
 * and returns the exit code. Servers end with the run. Where CI is set, a skipped test fails the run.
 */
export async function runTests(
  args: readonly string[],
  { servers, lacking = [], keepTimes = () => [] }: RunOptions,
): Promise<number> {
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      interrupted = signal;
      interrupt(signal);
    });
  }
  await clearAbandoned();
  const shared = servers ? await startLocalServers() : undefined;
  try {
    if (interrupted !== undefined) return signalled(interrupted);
    const { code, counts, times } = await runTap({ args, env: environmentOf(shared) });
    for (const line of keepTimes(times)) console.log(line);
    return report(code, counts, lacking);
  } finally {
    await shared?.stop();
  }
}

/** Prints what the run ends with. Returns the exit code. */
export function report(code: number, counts: Counts | undefined, lacking: readonly Lacking[]): number {
  if (counts === undefined) return code;
  const skipped = counts.skipped + filesLacking(lacking).size;
  const lines = [...printLacking(lacking), printCounts({ ...counts, skipped }, code)];
  process.stdout.write(`${lines.join('\n')}\n`);
  return code === 0 && process.env.CI && skipped > 0 ? 1 : code;
}

function environmentOf(servers: LocalServers | undefined): Record<string, string> {
  if (servers === undefined) return {};
  return { TEST_DATABASE_URL: servers.databaseUrl, TEST_NATS_URL: servers.natsUrl };
}

function signalled(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

async function runTap(run: Run): Promise<Outcome> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-tap-'));
  try {
    return process.stdout.isTTY ? await showTap(run, join(dir, 'output')) : await shortenTap(run);
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** For a person, who sees tap's own report. */
async function showTap(run: Run, path: string): Promise<Outcome> {
  const code = await findEnd(startTap(run, 'inherit', `--output-file=${path}`));
  return { code, ...readTap((await readFile(path, 'utf8').catch(() => '')).split('\n')) };
}

/** For a file, which gets what tells something of tap's output. */
async function shortenTap(run: Run): Promise<Outcome> {
  const child = startTap(run, 'pipe', '--reporter=tap');
  const end = findEnd(child);
  const telling: string[] = [];
  for await (const line of createInterface({ input: child.stdout!, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (!isTelling(line)) continue;
    telling.push(line);
    process.stdout.write(`${line}\n`);
  }
  return { code: await end, ...readTap(telling) };
}

function readTap(lines: readonly string[]): Pick<Outcome, 'counts' | 'times'> {
  const counts = lines.map(findCounts).findLast((found) => found !== undefined);
  const times = lines.map(findTime).filter((found) => found !== undefined);
  return { counts, times: Object.fromEntries(times) };
}

/** Tap leads its own process group, so that it gets each signal once and its test processes get it too. */
function startTap({ args, env }: Run, stdout: 'inherit' | 'pipe', output: string): ChildProcess {
  const tap = join(dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist/esm/run.mjs');
  const strict = process.env.CI ? ['--fail-only'] : [];
  const child = spawn(process.execPath, [tap, 'run', output, ...strict, ...args], {
    detached: true,
    stdio: ['ignore', stdout, 'inherit'],
    env: {
      ...process.env,
      ...env,
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${WITHOUT_HOOKS}`,
    },
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
