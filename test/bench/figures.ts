/** The processor time per request by commit, kept in a file: what `--compare` reads and `--record` appends to. */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { run } from './process.js';
import type { Machine } from './report.js';
import type { Measurement } from './roles.js';
import { fixed, table } from './table.js';

/** What is compared between commits. */
export const COMPARED = ['create', 'read', 'bundle'] as const;
type Compared = (typeof COMPARED)[number];

/** Microseconds of processor time per request, of all processes; medians over the rounds. */
type Figure = {
  service: number;
  /** Of the bare handler in the same run. */
  fair: number;
  /** `fair` divided by `service` in each round: smallest, median, largest. */
  ratio: [number, number, number];
};

/** One run. Only ratios compare between machines. */
export type Entry = {
  commit: string;
  date: string;
  machine: string;
  rounds: number;
  figures: Record<Compared, Figure>;
};

/** A change of the cost beyond this is named, if it is more than noise. */
const NOTABLE = 0.05;

const FILE = fileURLToPath(new URL('../../../test/bench/figures.json', import.meta.url));

/** All entries, the oldest first. */
export async function readEntries(): Promise<Entry[]> {
  return JSON.parse(await readFile(FILE, 'utf8')) as Entry[];
}

/** Appends an entry. Throws if an entry of the same commit and machine exists. */
export async function appendEntry(entry: Entry): Promise<void> {
  const entries = await readEntries();
  const isKnown = entries.some(({ commit, machine }) => commit === entry.commit && machine === entry.machine);
  if (isKnown)
    throw new Error(`there is an entry of ${entry.commit} on this machine; remove it to replace it`);
  const lines = [...entries, entry].map(entryText);
  await writeFile(FILE, `[\n${lines.join(',\n')}\n]\n`);
}

/** A line for each figure. */
function entryText({ figures, ...head }: Entry): string {
  const lines = COMPARED.map((name) => `      "${name}": ${spaced(figures[name])}`);
  const members = Object.entries(head).map(([name, value]) => `    "${name}": ${JSON.stringify(value)},`);
  return ['  {', ...members, '    "figures": {', lines.join(',\n'), '    }', '  }'].join('\n');
}

function spaced({ service, fair, ratio }: Figure): string {
  return `{ "service": ${service}, "fair": ${fair}, "ratio": [${ratio.join(', ')}] }`;
}

/** The newest entry, or that of a commit, given by the start of its id. Throws if there is none. */
export function findEntry(entries: readonly Entry[], commit: string): Entry {
  const found = entries.filter((entry) => entry.commit.startsWith(commit)).at(-1);
  if (found !== undefined) return found;
  const known = entries.map((entry) => entry.commit).join(', ') || 'none';
  const wanted = commit === '' ? '' : ` of ${commit}`;
  throw new Error(`test/bench/figures.json has no entry${wanted}; it has ${known}: --record adds one`);
}

/** The entry of what was measured now. */
export function entryOf(
  measured: readonly Measurement[],
  { commit, machine, rounds }: { commit: string; machine: Machine; rounds: number },
): Entry {
  const figures = COMPARED.map((name) => {
    const found = measured.find((one) => one.name === name);
    if (found === undefined) throw new Error(`${name} was not measured`);
    return [name, figureOf(found)];
  });
  return {
    commit,
    date: new Date().toISOString().slice(0, 10),
    machine: `${machine.cores} cores (${machine.cpu}), ${machine.platform}, Node ${machine.node}`,
    rounds,
    figures: Object.fromEntries(figures) as Entry['figures'],
  };
}

function figureOf({ summaries: [fair, service] }: Measurement): Figure {
  if (fair?.allMicros === undefined || service?.allMicros === undefined || service.cpuRatio === undefined)
    throw new Error('the processor time of processes cannot be read on this machine');
  const { min, median, max } = service.cpuRatio;
  return {
    service: rounded(service.allMicros.median, 1),
    fair: rounded(fair.allMicros.median, 1),
    ratio: [rounded(min, 3), rounded(median, 3), rounded(max, 3)],
  };
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

/** What became cheaper or costlier since an entry, and how far the runs differ among themselves. */
export function compareLines(now: Entry, then: Entry): string {
  const columns = ['', 'µs now', 'of fair', `µs ${then.commit}`, 'of fair', 'cost', 'noise', ''];
  const rows = COMPARED.map((name) => {
    const [here, there] = [now.figures[name], then.figures[name]];
    const change = there.ratio[1] / here.ratio[1] - 1;
    const noise = Math.max(noiseOf(here), noiseOf(there));
    return [
      name,
      fixed(here.service),
      here.ratio[1].toFixed(2),
      fixed(there.service),
      there.ratio[1].toFixed(2),
      percent(change),
      `±${(noise * 100).toFixed(0)} %`,
      `  ${verdict(change, noise)}`,
    ];
  });
  const where =
    now.machine === then.machine
      ? 'on the same machine'
      : `on ${then.machine}: compare "of fair", not microseconds`;
  return `\nnow beside ${then.commit} of ${then.date}, ${where}\n${table([columns, ...rows])}`;
}

/** Half of the spread of the rounds. */
function noiseOf({ ratio: [min, median, max] }: Figure): number {
  return (max - min) / 2 / median;
}

function verdict(change: number, noise: number): string {
  if (Math.abs(change) <= NOTABLE) return 'as before';
  if (Math.abs(change) <= noise) return 'more than 5 %, but not more than the runs differ: measure again';
  return change > 0 ? 'COSTLIER by more than 5 %: the commit says why' : 'cheaper by more than 5 %';
}

function percent(share: number): string {
  return `${share >= 0 ? '+' : ''}${(share * 100).toFixed(1)} %`;
}

/** The commit that is checked out. Throws where the files differ from it and `isExact` is set. */
export async function currentCommit(isExact: boolean): Promise<string> {
  const { stdout: commit } = await run('git', ['rev-parse', '--short=10', 'HEAD']);
  if (!isExact) return commit.trim();
  const { stdout: changed } = await run('git', ['status', '--porcelain', '--untracked-files=no']);
  const others = changed
    .split('\n')
    .filter((line) => line !== '' && !line.endsWith('test/bench/figures.json'));
  if (others.length > 0) throw new Error('--record is for a commit: commit the changes first');
  return commit.trim();
}
