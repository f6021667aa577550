/** The running totals of the verification of an export. */
import type { CoveredLog } from '../../proof/export/coverage.js';
import type { ManifestFields } from '../../proof/export/manifest-fields.js';
import type { LineVerification } from '../../proof/export/verify-line.js';
import type { Verdict } from '../../proof/verify/verify.js';

/** A finding other than that all is well; `line` counts from 1. */
export type ExportProblem = {
  readonly file: string;
  readonly line?: number;
  readonly reason: string;
  readonly verdict: Exclude<Verdict, 'verified'>;
};

/** One export, as its verified manifests describe it. */
export type ExportSummary = Pick<ManifestFields, 'exportId' | 'project' | 'environment'> & {
  readonly firstDay: string;
  readonly lastDay: string;
  /** Whether the last day is complete. */
  readonly isComplete: boolean;
  readonly logs: readonly CoveredLog[];
};

/** Counts, and the first of what is listed. */
export type Tally = {
  readonly lines: Record<Verdict, number>;
  objects: number;
  /** Verified manifests. */
  manifests: number;
  /** The first objects that no manifest covers, and how many there are. */
  readonly uncovered: { readonly files: string[]; total: number };
  readonly problems: { readonly list: ExportProblem[]; total: number; hasFailed: boolean };
  /** Members of lines that this version does not know, which are ignored: the first of them. */
  readonly ignored: Set<string>;
  earliest: Date | undefined;
  latest: Date | undefined;
  readonly exports: ExportSummary[];
};

const MAX_LISTED = 100;
const MAX_REASON_LENGTH = 500;

/** An empty tally. */
export function createTally(): Tally {
  return {
    lines: { verified: 0, not_verified: 0, could_not_check: 0 },
    objects: 0,
    manifests: 0,
    uncovered: { files: [], total: 0 },
    problems: { list: [], total: 0, hasFailed: false },
    ignored: new Set(),
    earliest: undefined,
    latest: undefined,
    exports: [],
  };
}

/** Adds a problem. Only the first hundred are listed. */
export function addProblem({ problems }: Tally, problem: ExportProblem): void {
  problems.total++;
  if (problem.verdict === 'not_verified') problems.hasFailed = true;
  if (problems.list.length >= MAX_LISTED) return;
  problems.list.push({ ...problem, reason: problem.reason.slice(0, MAX_REASON_LENGTH) });
}

/** Counts a line by its verdict, and its proven time. */
export function addLine(
  tally: Tally,
  { verdict, existedBy, ignored = [] }: Pick<LineVerification, 'verdict' | 'existedBy' | 'ignored'>,
): void {
  tally.lines[verdict]++;
  for (const path of ignored) if (tally.ignored.size < MAX_LISTED) tally.ignored.add(path);
  if (existedBy === undefined) return;
  if (tally.earliest === undefined || existedBy < tally.earliest) tally.earliest = existedBy;
  if (tally.latest === undefined || existedBy > tally.latest) tally.latest = existedBy;
}

/** Adds an object that no manifest covers. Only the first hundred are listed. */
export function addUncovered({ uncovered }: Tally, file: string): void {
  uncovered.total++;
  if (uncovered.files.length < MAX_LISTED) uncovered.files.push(file);
}

/** The verdict over everything. */
export function verdictOf({ problems }: Tally): Verdict {
  if (problems.hasFailed) return 'not_verified';
  return problems.total > 0 ? 'could_not_check' : 'verified';
}
