import { allCpu, answerCpu, type CpuParts } from './cpu/cpu.js';

/** What one contender did in one round. */
export type Sample = {
  /** Requests that were answered, or units of work done, in a second. */
  perSecond: number;
  p50Ms?: number | undefined;
  p99Ms?: number | undefined;
  maxMs?: number | undefined;
  /** Requests that failed or were refused. */
  failed?: number | undefined;
  /** Processor time of the working process per request, in microseconds: steadier than rates on a busy machine. */
  cpuMicros?: number | undefined;
  /** Processor time per request of every process, in microseconds. */
  cpu?: CpuParts | undefined;
};

/** Something that is measured in turns with others. */
export type Contender = {
  name: string;
  /** Measures for about that many seconds. */
  run: (seconds: number) => Promise<Sample>;
};

/** Smallest, middle and largest value over the rounds. */
export type Spread = { min: number; median: number; max: number };

/** The medians over the rounds of one contender, and how it compares with the limit. */
export type Summary = Sample & {
  name: string;
  /** The median over the rounds of this one's rate to the first one's; 1 for the first. */
  ratio: number;
  /** Processor time of all processes per request, in microseconds. */
  allMicros?: Spread | undefined;
  /** That of the first contender in the same round, divided by this one's: 1 for the first, below 1 if this costs more. */
  cpuRatio?: Spread | undefined;
  /** The same of what is spent until the answer. */
  answerRatio?: Spread | undefined;
  rate: Spread;
  samples: Sample[];
};

/**
 * Measures contenders in turns: the limit first, then the others, and so on, so that whatever else slows the machine
 * meets all of them. Before, each runs once for the warm-up, which is not counted.
 */
export async function measureInTurns(
  contenders: readonly Contender[],
  time: { rounds: number; seconds: number; warmUpSeconds: number },
): Promise<Summary[]> {
  if (time.warmUpSeconds > 0) for (const { run } of contenders) await run(time.warmUpSeconds);
  const rounds: Sample[][] = contenders.map(() => []);
  for (let round = 0; round < time.rounds; round++) {
    for (const [i, { run }] of contenders.entries()) rounds[i]?.push(await run(time.seconds));
  }
  return contenders.map(({ name }, i) => summarize(name, rounds[i] ?? [], rounds[0] ?? []));
}

function summarize(name: string, samples: Sample[], limits: readonly Sample[]): Summary {
  const of = (pick: (sample: Sample) => number | undefined) =>
    median(samples.map(pick).filter((value) => value !== undefined));
  const rate = spreadOf(samples.map(({ perSecond }) => perSecond)) ?? { min: 0, median: 0, max: 0 };
  return {
    name,
    ratio: median(samples.map((sample, i) => sample.perSecond / (limits[i]?.perSecond ?? Number.NaN))) ?? 0,
    perSecond: rate.median,
    rate,
    p50Ms: of((sample) => sample.p50Ms),
    p99Ms: of((sample) => sample.p99Ms),
    maxMs: of((sample) => sample.maxMs),
    failed: samples.reduce((sum, sample) => sum + (sample.failed ?? 0), 0),
    cpuMicros: of((sample) => sample.cpuMicros),
    ...summarizeCpu(samples, limits),
    samples,
  };
}

function summarizeCpu(
  samples: readonly Sample[],
  limits: readonly Sample[],
): Pick<Summary, 'cpu' | 'allMicros' | 'cpuRatio' | 'answerRatio'> {
  const all = samples.flatMap(({ cpu }) => (cpu === undefined ? [] : allCpu(cpu)));
  if (all.length < samples.length || all.length === 0) return {};
  const of = (part: keyof CpuParts) => median(samples.map(({ cpu }) => cpu?.[part] ?? 0)) ?? 0;
  const ratios = (micros: (parts: CpuParts) => number) =>
    samples.flatMap(({ cpu }, i) => {
      const limit = limits[i]?.cpu;
      return limit === undefined || cpu === undefined ? [] : micros(limit) / micros(cpu);
    });
  return {
    cpu: {
      server: of('server'),
      worker: of('worker'),
      postgres: of('postgres'),
      workerPostgres: of('workerPostgres'),
      nats: of('nats'),
    },
    allMicros: spreadOf(all),
    cpuRatio: spreadOf(ratios(allCpu)),
    answerRatio: spreadOf(ratios(answerCpu)),
  };
}

/** Undefined of no values. */
export function spreadOf(values: readonly number[]): Spread | undefined {
  const middle = median(values);
  if (middle === undefined) return undefined;
  return { min: Math.min(...values), median: middle, max: Math.max(...values) };
}

/** The middle value, or the mean of the two in the middle; undefined of none. */
export function median(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return low === undefined || high === undefined ? undefined : (low + high) / 2;
}

/** The value below which a share of the values lies; undefined of none. */
export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}
