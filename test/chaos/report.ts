import type { Result } from './campaign.js';

/** What of a result is printed as JSON: all but what was only gathered to be judged. */
export function summarize({ evidence: _evidence, bundles: _bundles, roots: _roots, ...result }: Result) {
  const { rounds, scene: _scene, ...rest } = result;
  return { ...rest, rounds: rounds.length, faults: faultRows(rounds) };
}

type FaultRow = {
  kind: string;
  times: number;
  overlapping: number;
  accepts: Spread | undefined;
  witnessed: Spread | undefined;
};
type Spread = { medianMs: number; maxMs: number };

/** One row a kind. Times of recovery are of those that were alone: of others nobody can say whose they are. */
function faultRows(rounds: Result['rounds']): FaultRow[] {
  const kinds = new Map<string, Result['rounds']>();
  for (const round of rounds)
    for (const { kind } of round.faults) kinds.set(kind.name, [...(kinds.get(kind.name) ?? []), round]);
  return [...kinds]
    .map(([kind, of]): FaultRow => {
      const alone = of.filter(({ faults }) => faults.length === 1).map(({ recovery }) => recovery);
      return {
        kind,
        times: of.length,
        overlapping: of.length - alone.length,
        accepts: spread(alone.map(({ acceptsMs }) => acceptsMs)),
        witnessed: spread(alone.map(({ witnessedMs }) => witnessedMs)),
      };
    })
    .sort((one, other) => (one.kind < other.kind ? -1 : 1));
}

function spread(values: number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.sort((a, b) => a - b);
  return { medianMs: sorted[Math.floor((sorted.length - 1) / 2)]!, maxMs: sorted.at(-1)! };
}

/** The table that a person reads. */
export function reportLines(result: Result): string {
  const rows = faultRows(result.rounds);
  const cells = rows.map(({ kind, times, overlapping, accepts, witnessed }) => [
    kind,
    String(times),
    String(overlapping),
    seconds(accepts?.medianMs),
    seconds(accepts?.maxMs),
    seconds(witnessed?.medianMs),
    seconds(witnessed?.maxMs),
  ]);
  const together = result.rounds.filter(({ faults }) => faults.length > 1).map(({ recovery }) => recovery);
  const accepts = spread(together.map(({ acceptsMs }) => acceptsMs));
  const witnessed = spread(together.map(({ witnessedMs }) => witnessedMs));
  cells.push([
    `rounds of several (${together.length} of ${result.rounds.length})`,
    '',
    '',
    seconds(accepts?.medianMs),
    seconds(accepts?.maxMs),
    seconds(witnessed?.medianMs),
    seconds(witnessed?.maxMs),
  ]);
  const faults = rows.reduce((sum, { times }) => sum + times, 0);
  return [
    `\nseed ${result.seed}: ${result.minutes} min, ${faults} faults in ${result.rounds.length} rounds`,
    '',
    table([COLUMNS, ...cells]),
    ...section('not to be had here', result.unavailable),
    ...section('the clients', countLines(result.counts)),
    ...section('checked', countLines(result.looked)),
    ...section('at the end', [
      `everything settled after ${seconds(result.settledMs)} s`,
      ...result.holdings.map(
        ({ name, rssMib, descriptors }) => `${name}: ${rssMib} MiB, ${descriptors} descriptors`,
      ),
    ]),
    '',
    result.problems.length === 0 ? 'everything held' : `${result.problems.length} things did not hold:`,
    ...result.problems.slice(0, 40).map(({ check, problem }) => `  ${check}: ${problem}`),
  ].join('\n');
}

const COLUMNS = ['fault', 'times', 'with others', '201 median s', 'max', 'witnessed median s', 'max'];

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)];
}

function countLines(counts: Record<string, number>): string[] {
  return Object.entries(counts).map(([what, count]) => `${what}: ${count}`);
}

function seconds(ms: number | undefined): string {
  return ms === undefined ? '-' : (ms / 1000).toFixed(1);
}

/** Columns as wide as they need be, all but the first to the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => (row[i] ?? '').length))) ?? [];
  const cell = (text: string, i: number) =>
    i === 0 ? text.padEnd(widths[i] ?? 0) : text.padStart(widths[i] ?? 0);
  return rows.map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
}
