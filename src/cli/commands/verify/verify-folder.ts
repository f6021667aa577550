/** `attest verify <folder> --set F --bundle B`: the files of a folder against a set that was attested. */
import { compareFiles } from '../../../proof/set/compare-files.js';
import {
  addFinding,
  BAD_FINDINGS,
  type FolderTally,
  judgeFolder,
  startTally,
  tallyText,
} from '../../../proof/set/folder-tally.js';
import { printablePath } from '../../../proof/set/path.js';
import { readSet, type SetSummary } from '../../../proof/set/read-set.js';
import { SetError } from '../../../proof/set/set-error.js';
import type { SetAsked } from '../../../proof/verify/steps/set-step.js';
import type { Verification } from '../../../proof/verify/verify.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print } from '../../cli.js';
import { EXIT_CODES } from '../../output/exit-codes.js';
import { formatVerification, verificationJson } from '../../output/verification-text.js';
import { type FolderFlags, readFolder } from '../../sets/folder-files.js';
import { openSet } from '../../sets/set-file.js';
import { setCases, verificationCase } from '../../verify-folder/junit-cases.js';
import { type JUnitCase, writeJUnit } from '../../verify-folder/junit-report.js';

type Flags = FolderFlags & { set: string; bundle: string; extraOk?: boolean; junit?: string; json?: boolean };

/** How many paths are printed of each kind; --json has all. */
const MAX_PRINTED = 20;

/**
 * Verifies the bundle of a set, and that the files of a folder are those of the set. `verify` verifies the bundle with the
 * set. Sets the exit code: 0 only if no file is changed, missing or extra. Throws what hashing throws, and UsageError.
 */
export async function verifyFolder(
  cli: Cli,
  folder: string,
  {
    flags,
    verify,
    origin,
  }: { flags: Flags; verify: (set: SetAsked['set']) => Promise<Verification>; origin: string },
): Promise<void> {
  const startedAt = cli.now();
  const compared = await compare(cli, folder, flags);
  const asked = await verify(compared?.summary ?? (await openSet(flags.set)));
  const verification = compared === undefined ? asked : judgeFolder(asked, compared, flags);
  cli.exitCode = EXIT_CODES[verification.verdict];
  if (flags.junit !== undefined) {
    const cases = [verificationCase(flags.bundle, asked), ...(compared?.cases ?? [])];
    await writeJUnit(flags.junit, { cases, startedAt, endedAt: cli.now() });
  }
  if (flags.json) {
    const json = verificationJson(verification, origin);
    print(cli, JSON.stringify({ ...json, files: compared && { ...compared.counts, paths: compared.paths } }));
    return;
  }
  if (compared !== undefined) for (const line of formatTally(compared, flags)) print(cli, line);
  for (const line of formatVerification(verification, origin)) print(cli, printable(line));
}

/** `cases`: of all paths, for --junit alone. */
type Compared = FolderTally & { readonly summary: SetSummary; readonly cases: readonly JUnitCase[] };

/** Compares in one pass over both; undefined if the set cannot be read, which verification says better. */
async function compare(cli: Cli, folder: string, flags: Flags): Promise<Compared | undefined> {
  const tally = startTally();
  const maxKept = flags.json ? Number.POSITIVE_INFINITY : MAX_PRINTED;
  const { set, bundle, junit, extraOk = false } = flags;
  const cases: JUnitCase[] = [];
  const outputs = [set, bundle, ...(junit === undefined ? [] : [junit])];
  const files = readFolder(cli, folder, { flags, outputs });
  try {
    const { items, finish } = readSet(await openSet(set));
    for await (const finding of compareFiles(items, files)) {
      addFinding(tally, finding, maxKept);
      if (junit !== undefined) cases.push(...setCases(finding, extraOk));
    }
    return { ...tally, cases, summary: await finish() };
  } catch (error) {
    if (error instanceof SetError) return undefined;
    throw error;
  } finally {
    await files.return(undefined);
  }
}

/** A line for each file that is not in order, and one with all counts. */
function formatTally(tally: FolderTally, { extraOk }: Flags): string[] {
  const { counts, paths } = tally;
  const lines = BAD_FINDINGS.filter((bad) => bad !== 'extra' || !extraOk).flatMap((bad) => {
    const shown = paths[bad].map((path) => `${bad.padEnd(8)}  ${printablePath(path)}`);
    const left = counts[bad] - shown.length;
    return left > 0 ? [...shown, `${bad.padEnd(8)}  and ${left} more`] : shown;
  });
  return [...lines, tallyText(tally), ''];
}
