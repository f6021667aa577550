/** What a comparison of a folder with a set comes to. */
import type { Verification } from '../verify/verify.js';
import type { FileFinding } from './compare-files.js';
import { countFiles } from './verify-set.js';

/** The kinds of findings that a folder must not have. */
export const BAD_FINDINGS = ['changed', 'missing', 'extra'] as const;

type BadFinding = (typeof BAD_FINDINGS)[number];

/** The count of each kind, and the first paths of those that are not in order. */
export type FolderTally = {
  readonly counts: Record<FileFinding['status'], number>;
  readonly paths: Record<BadFinding, string[]>;
};

/** Creates a tally without findings. */
export function startTally(): FolderTally {
  return {
    counts: { ok: 0, changed: 0, missing: 0, extra: 0, withheld: 0 },
    paths: { changed: [], missing: [], extra: [] },
  };
}

/** Counts a finding; keeps its path if it is not in order and fewer than `maxPaths` of its kind are kept. */
export function addFinding({ counts, paths }: FolderTally, finding: FileFinding, maxPaths: number): void {
  counts[finding.status]++;
  if (finding.status === 'ok' || finding.status === 'withheld') return;
  const kept = paths[finding.status];
  if (kept.length < maxPaths) kept.push(finding.path);
}

/** Returns all counts as one line. */
export function tallyText({ counts }: FolderTally): string {
  const all = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  const total = counts.ok + counts.changed + counts.missing + counts.withheld;
  return `Files: ${all.join(', ')}; the set has ${countFiles(total)}`;
}

/**
 * Returns the verification of the set's bundle as that of the folder: `not_verified` if a file is changed, missing, or extra
 * unless `extraOk`.
 */
export function judgeFolder(
  verification: Verification,
  { counts }: FolderTally,
  { extraOk = false }: { readonly extraOk?: boolean | undefined } = {},
): Verification {
  const bad = BAD_FINDINGS.filter((status) => counts[status] > 0 && !(status === 'extra' && extraOk));
  if (bad.length === 0) return verification;
  const { verdict, summary } = verification;
  const counted = bad.map((status) => `${counts[status]} ${status}`).join(', ');
  const found = `Not verified: the files of the folder are not those of the set (${counted}).`;
  return {
    ...verification,
    verdict: 'not_verified',
    summary: verdict === 'verified' ? found : `${found} ${summary}`,
  };
}
