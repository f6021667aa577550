/** Keeps how long each test file took, for the order of the next run. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Milliseconds by the path of a test's source. */
export type Times = Readonly<Record<string, number>>;

const PRINTED = 20;

/** The times that earlier runs kept in a file. */
export function readTimes(file: string): Times {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Times;
  } catch {
    return {};
  }
}

/** Adds the times of a run to those in a file, the longest first. Returns lines that name the run's slowest test files. */
export function keepTimes(file: string, times: Times): string[] {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(longestFirst({ ...readTimes(file), ...times }), null, 1)}\n`);
  const slowest = Object.entries(longestFirst(times)).slice(0, PRINTED);
  if (slowest.length === 0) return [];
  return [
    `slowest files, in seconds; ${file} has all:`,
    ...slowest.map(([path, ms]) => `${(ms / 1000).toFixed(1).padStart(7)} ${path}`),
  ];
}

function longestFirst(times: Times): Times {
  return Object.fromEntries(Object.entries(times).sort(([, a], [, b]) => b - a));
}
