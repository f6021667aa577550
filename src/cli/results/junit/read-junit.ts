/** Results of tests, for --junit. */
import type { PresentFile } from '../../../proof/set/compare-files.js';
import { comparePaths } from '../../../proof/set/path.js';
import type { Cli } from '../../cli.js';
import { inputFileSize } from '../../input/input-file.js';
import { openProgress } from '../../output/progress.js';
import type { Results } from '../results.js';
import { type ReadReport, readReport } from './read-report.js';
import { openTally, type Tally } from './tally.js';
import { makeTestResult, type RunDetails } from './test-result.js';

/** The reports that were read, and their tests. */
export type ReadReports = { readonly reports: readonly ReadReport[]; readonly tally: Tally };

/** Reads reports, with progress on standard error. Throws UsageError, with file and line, if one is no report. */
export async function readReports(
  cli: Cli,
  files: readonly string[],
  signal: AbortSignal,
): Promise<ReadReports> {
  let total = 0;
  for (const file of files) total += await inputFileSize(file);
  const shown = { output: cli.stderr, now: () => cli.now().getTime() };
  const progress = openProgress(shown, 'reading reports', total);
  const tally = openTally();
  const reports: ReadReport[] = [];
  try {
    for (const file of files) reports.push(await readReport(file, tally, { onBytes: progress.add, signal }));
  } finally {
    progress.clear();
  }
  return { reports, tally };
}

/** One report is attested itself, unless a set is asked for; several are a set. `pathOf` gives their paths in it. */
export function junitResults(
  { reports, tally }: ReadReports,
  details: RunDetails,
  { pathOf, asSet }: { pathOf: (file: string) => string; asSet: boolean },
): Results {
  const metadata = makeTestResult(tally, details);
  const [first, ...others] = reports;
  if (first !== undefined && others.length === 0 && !asSet)
    return { name: first.file, metadata, artifact: { sha256: first.sha256 } };
  const files = reports.map(({ file, bytes, sha256 }) => ({ path: pathOf(file), bytes, sha256 }));
  return { name: 'junit', metadata, entries: inOrder(files) };
}

/** Yields files in the order of a set. */
export async function* inOrder(files: readonly PresentFile[]): AsyncGenerator<PresentFile> {
  yield* files.toSorted((a, b) => comparePaths(a.path, b.path));
}
