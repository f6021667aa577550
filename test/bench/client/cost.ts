import { ATTEST, endedCpuMs, peakMib, run } from '../process.js';

/** What a program took: processor time of all its threads and of the processes that it started, and time by the clock. */
export type Cost = {
  cpuSeconds: number;
  seconds: number;
  /** The most memory that it had resident, of one process; undefined where there is no /proc. */
  peakMib: number | undefined;
};

/** A program, with its arguments, environment and folder. */
export type Command = {
  file: string;
  args: readonly string[];
  env?: Record<string, string>;
  cwd?: string;
};

const POLL_MS = 10;

/** Runs a program to its end and returns what it took. Throws when it fails. */
export async function costOf({ file, args, env, cwd }: Command): Promise<Cost & { stdout: string }> {
  let pid = 0;
  let peak: number | undefined;
  const timer = setInterval(() => {
    peak = peakMib(pid) ?? peak;
  }, POLL_MS);
  const startedMs = performance.now();
  const before = endedCpuMs() ?? 0;
  const onStarted = (started: number) => {
    pid = started;
  };
  const { stdout } = await run(file, args, env, { ...(cwd && { cwd }), onStarted, isQuiet: true }).finally(
    () => clearInterval(timer),
  );
  return {
    cpuSeconds: ((endedCpuMs() ?? 0) - before) / 1000,
    seconds: (performance.now() - startedMs) / 1000,
    peakMib: peak,
    stdout,
  };
}

/** The command line as users run it: the bundled program, in a process of its own. */
export function attest(line: readonly string[], where: Pick<Command, 'env' | 'cwd'> = {}): Command {
  return { file: process.execPath, args: [ATTEST, ...line], ...where };
}

/** The least time of some rounds, since others only add to it, and the most memory. */
export function leastOf(costs: readonly Cost[]): Cost {
  const peaks = costs.flatMap(({ peakMib }) => peakMib ?? []);
  return {
    cpuSeconds: Math.min(...costs.map(({ cpuSeconds }) => cpuSeconds)),
    seconds: Math.min(...costs.map(({ seconds }) => seconds)),
    peakMib: peaks.length === 0 ? undefined : Math.max(...peaks),
  };
}

/** What a command takes, at least of some rounds, each the mean of so many runs: processor time is counted in 10 ms. */
export async function leastCost(command: Command, rounds: number, runs = 1): Promise<Cost> {
  const means: Cost[] = [];
  for (let round = 0; round < rounds; round++) {
    const costs: Cost[] = [];
    for (let i = 0; i < runs; i++) costs.push(await costOf(command));
    const mean = (of: (cost: Cost) => number) => costs.reduce((sum, cost) => sum + of(cost), 0) / runs;
    means.push({
      cpuSeconds: mean(({ cpuSeconds }) => cpuSeconds),
      seconds: mean(({ seconds }) => seconds),
      peakMib: leastOf(costs).peakMib,
    });
  }
  return leastOf(means);
}
