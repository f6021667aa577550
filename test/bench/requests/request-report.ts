import type { Measurement } from '../roles.js';
import type { Spread, Summary } from '../rounds.js';
import { fixed, table, whole } from '../table.js';

const REQUEST_COLUMNS = ['', 'req/s', 'of limit', 'p50 ms', 'p99 ms', 'max ms', 'failed'];
const CPU_COLUMNS = [
  'CPU µs/req',
  'server',
  'Postgres',
  'of limit',
  'worker',
  'its Postgres',
  'nats',
  'all',
  'min to max',
  'of limit',
];

/**
 * The figures of one measure of requests: medians over the rounds. "Of limit" is the first line's processor time divided
 * by this line's, as rates are compared: below 1 is slower, or costs more.
 */
export function requestLines({ name, summaries, bytes, apiMib, workerMib }: Measurement): string {
  const title = bytes === undefined ? name : `${name} (${bytes} bytes)`;
  const rows = summaries.map((summary) => [
    summary.name,
    whole(summary.perSecond),
    summary.ratio.toFixed(2),
    fixed(summary.p50Ms),
    fixed(summary.p99Ms),
    fixed(summary.maxMs),
    whole(summary.failed),
  ]);
  const memory = `peak memory: api ${whole(apiMib)} MiB, worker ${whole(workerMib)} MiB`;
  return `\n${title}\n${table([REQUEST_COLUMNS, ...rows])}\n${cpuLines(summaries)}\n${memory}`;
}

/** Processor time per request: what is spent until the answer, then every process. */
export function cpuLines(summaries: readonly Summary[]): string {
  const rows = summaries.flatMap(({ name, cpu, allMicros, cpuRatio, answerRatio }) =>
    cpu === undefined
      ? []
      : [
          [
            name,
            fixed(cpu.server),
            fixed(cpu.postgres),
            ratioText(answerRatio),
            fixed(cpu.worker),
            fixed(cpu.workerPostgres),
            fixed(cpu.nats),
            fixed(allMicros?.median),
            `${fixed(allMicros?.min)} to ${fixed(allMicros?.max)}`,
            ratioText(cpuRatio),
          ],
        ],
  );
  return table([CPU_COLUMNS, ...rows]);
}

function ratioText(ratio: Spread | undefined): string {
  return ratio === undefined ? '-' : ratio.median.toFixed(2);
}
