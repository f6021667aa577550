/** Keeps how long each test file took, for the order of the next run. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Milliseconds by the path of a test's source. */
export type Times = Readonly<Record<string, number>>;

const FILE = '.tap/times.json';
const PRINTED = 20;

/** The times that the last runs in this checkout kept. */
export function readTimes(root: string): Times {
  try {
    return JSON.parse(readFileSync(join(root, FILE), 'utf8')) as Times;
  } catch {
    return {};
  }
}

/** Adds the times of a run to those kept, the longest first. Returns lines that name the run's slowest files. */
export function keepTimes(root: string, times: Times): string[] {
  mkdirSync(dirname(join(root, FILE)), { recursive: true });
  writeFileSync(
    join(root, FILE),
    `${JSON.stringify(longestFirst({ ...readTimes(root), ...times }), null, 1)}\n`,
  );
  const slowest = Object.entries(longestFirst(times)).slice(0, PRINTED);
  if (slowest.length === 0) return [];
  return [
    `slowest files, in seconds; ${FILE} has all:`,
    ...slowest.map(([file, ms]) => `${(ms / 1000).toFixed(1).padStart(7)} ${file}`),
  ];
}

function longestFirst(times: Times): Times {
  return Object.fromEntries(Object.entries(times).sort(([, a], [, b]) => b - a));
}
