/** Reads what tap prints. */

/** Assertions of a run, and files that failed or were skipped without one; one that is still to do counts as skipped. */
export type Counts = { passed: number; failed: number; skipped: number };

const COUNTS = /^# \{ (total: \d+, .*) \}$/;
/** A test file of a whole run, which is a subtest of its process. */
const FILE = /^ {4}(?:not )?ok \d+ - (test\/\S+\.test\.ts) # time=([\d.]+)ms/;
/** What passed inside a file; its last line of its own says so for all of it. */
const PASSED = /^\s+(?:ok\b(?!.* # (?:SKIP|TODO)\b)|1\.\.\d|# time=)|^\s*(?:# Subtest\b.*)?$/i;

/** The counts that a run's TAP ends with, when this is the line that holds them. */
export function findCounts(line: string): Counts | undefined {
  const text = COUNTS.exec(line)?.[1];
  if (text === undefined) return undefined;
  const numbers = new Map(text.split(', ').map((part) => part.split(': ') as [string, string]));
  const count = (...names: string[]) => names.reduce((sum, name) => sum + Number(numbers.get(name) ?? 0), 0);
  return { passed: count('pass'), failed: count('fail'), skipped: count('skip', 'todo') };
}

/** The test file whose end a line of TAP is, by its source, and how many milliseconds it took. */
export function findTime(line: string): [file: string, ms: number] | undefined {
  const [, file, ms] = FILE.exec(line) ?? [];
  return file === undefined ? undefined : [file, Math.round(Number(ms))];
}

/** Whether a line of TAP tells a reader more than that all is well so far. */
export function isTelling(line: string): boolean {
  return FILE.test(line) || !PASSED.test(line);
}

/** One line, in a form that programs read too. A run that ended with another code than 0 has failed, by an error if by no assertion. */
export function printCounts({ passed, failed, skipped }: Counts, code: number): string {
  return `${passed} passed, ${code === 0 ? failed : Math.max(failed, 1)} failed, ${skipped} skipped`;
}
