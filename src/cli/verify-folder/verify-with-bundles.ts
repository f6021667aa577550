/** `attest verify --bundles DIR`: a folder, or one file, against the bundles in a folder. */
import { realpathSync } from 'node:fs';
import type { PresentFile } from '../../proof/set/compare-files.js';
import { type Cli, print, UsageError } from '../cli.js';
import { EXIT_CODES } from '../output/exit-codes.js';
import { openProgress } from '../output/progress.js';
import { type FolderFlags, findInside, readFolder } from '../sets/folder-files.js';
import { listBundles } from './find-bundles.js';
import {
  type FolderReport,
  folderJson,
  formatFolder,
  gatherFacts,
  gatherFindings,
  verdictOfFolder,
} from './folder-report.js';
import {
  type BundleOptions,
  createBundleJudge,
  type JudgedBundle,
  type ProvenFacts,
} from './judge-bundle.js';
import { matchCase } from './junit-cases.js';
import { writeJUnit } from './junit-report.js';
import { matchFiles } from './match-files.js';

type Flags = FolderFlags & { bundles: string; extraOk?: boolean; junit?: string; json?: boolean };

/** What is verified against: the trust, where it is from, and files that are neither bundles nor artifacts. */
export type BundlesAsked = {
  readonly options: BundleOptions;
  readonly origin: string;
  readonly outputs: readonly string[];
};

/**
 * Verifies the bundles in a folder, and that each file of another folder, or of the same, has one. Prints the report and sets
 * the exit code. Throws UsageError, and what hashing throws.
 */
export async function verifyFolderWithBundles(
  cli: Cli,
  folder: string,
  flags: Flags,
  { options, origin, outputs }: BundlesAsked,
): Promise<void> {
  const startedAt = cli.now();
  const { extraOk = false, junit, json } = flags;
  const judged = await judgeBundles(cli, folder, flags, { options, outputs });
  const files = withoutBundles(readFolder(cli, folder, { flags, outputs }), judged.inFolder);
  const found = matchFiles(judged.bundles, files);
  const report: FolderReport = {
    ...(await gatherFindings(found, junit !== undefined)),
    ...gatherFacts(judged.facts),
    bundles: judged.bundles.length,
  };
  if (junit !== undefined) {
    const cases = report.findings.map((finding) => matchCase(finding, extraOk));
    await writeJUnit(junit, { cases, startedAt, endedAt: cli.now() });
  }
  cli.exitCode = EXIT_CODES[verdictOfFolder(report, extraOk)];
  if (json) print(cli, JSON.stringify(folderJson(report, origin, extraOk)));
  else for (const line of formatFolder(report, origin, extraOk)) print(cli, line);
}

type Judged = {
  readonly bundles: JudgedBundle[];
  readonly facts: ProvenFacts[];
  /** Paths in the folder of files that are bundles. */
  readonly inFolder: ReadonlySet<string>;
};

/** Judges each bundle. A file of the folder that ends with .json is perhaps none, and then a file like any other. */
async function judgeBundles(
  cli: Cli,
  folder: string,
  { bundles: from }: Flags,
  { options, outputs }: Pick<BundlesAsked, 'options' | 'outputs'>,
): Promise<Judged> {
  const omitted = new Set(outputs.flatMap((path) => findInside(from, path) ?? []));
  const found = listBundles(from, (path) => omitted.has(path));
  const place = findInside(folder, realpathSync(from));
  const judge = createBundleJudge(from, realpathSync(folder), options);
  const shown = { output: cli.stderr, now: () => cli.now().getTime() };
  const progress = openProgress(shown, 'verifying', found.length, String, () => ' bundles');
  const [bundles, facts, inFolder]: [JudgedBundle[], ProvenFacts[], Set<string>] = [[], [], new Set()];
  for (const file of found) {
    const { judged, proven, isOther } = await judge(file);
    progress.add(1);
    if (place !== undefined && isOther) continue;
    if (place !== undefined) inFolder.add(place === '' ? file.path : `${place}/${file.path}`);
    bundles.push(judged);
    if (proven !== undefined) facts.push(proven);
  }
  progress.clear();
  if (bundles.length === 0) throw new UsageError(`${from} has no bundles: no .json file below it is one`);
  return { bundles, facts, inFolder };
}

async function* withoutBundles(
  files: AsyncIterable<PresentFile>,
  bundles: ReadonlySet<string>,
): AsyncGenerator<PresentFile> {
  for await (const file of files) if (!bundles.has(file.path)) yield file;
}
