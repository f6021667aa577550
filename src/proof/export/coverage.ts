/** Whether the manifests of an export cover its logs without gaps. */
import type { ManifestFields } from './manifest-fields.js';
import type { BatchRange } from './object-check.js';

/** The parts of a verified manifest that coverage depends on; `file` names it in problems. */
export type CoveringManifest = Omit<ManifestFields, 'objects'> & { readonly file: string };

/** The part of a log that the manifests cover; `start` is where the export starts in it. */
export type CoveredLog = {
  readonly origin: string;
  readonly start: number;
  readonly from: number;
  readonly to: number;
  /** Parts within, or before, that no manifest covers yet. */
  readonly gaps: readonly { readonly from: number; readonly to: number }[];
};

type CoverageProblem = { readonly file: string; readonly reason: string };

/**
 * Compares the manifests of one export. A gap before a complete manifest is a problem; before another one it is not
 * covered yet. `isWhole` says that these are all the export's days, so that the first must begin where the export starts.
 */
export function checkCoverage(
  manifests: readonly CoveringManifest[],
  isWhole: boolean,
): { logs: CoveredLog[]; problems: CoverageProblem[] } {
  const sorted = [...manifests].sort((a, b) => (a.day < b.day ? -1 : 1));
  const problems = sorted.flatMap((manifest, i) => compareWithPrevious(manifest, sorted[i - 1]));
  const logs = new Map<string, CoveredLog>();
  for (const manifest of sorted) {
    for (const range of manifest.logs) {
      const before = logs.get(range.origin);
      const end = before?.to ?? (isWhole ? range.start : range.from);
      const problem = rangeProblem(manifest, range, before);
      if (problem !== '') problems.push({ file: manifest.file, reason: problem });
      const isGap = range.from > end;
      const gap = { from: end, to: range.from };
      if (isGap && manifest.isComplete)
        problems.push({ file: manifest.file, reason: gapText(range.origin, gap) });
      const gaps = [...(before?.gaps ?? []), ...(isGap ? [gap] : [])];
      logs.set(range.origin, { ...(before ?? range), to: Math.max(range.to, end), gaps });
    }
  }
  return { logs: [...logs.values()], problems };
}

/** Whether a manifest covers any leaf of a batch. */
export function covers(
  { logs }: Pick<ManifestFields, 'logs'>,
  { log, firstIndex, treeSize }: BatchRange,
): boolean {
  return logs.some(({ origin, from, to }) => origin === log && firstIndex < to && treeSize > from);
}

function compareWithPrevious(
  manifest: CoveringManifest,
  previous: CoveringManifest | undefined,
): CoverageProblem[] {
  if (previous === undefined) return [];
  const { file } = manifest;
  const members = ['exportId', 'project', 'environment', 'filterSchema'] as const;
  const isOther = members.some((member) => manifest[member] !== previous[member]);
  return [
    ...(isOther ? [{ file, reason: `it is of another export than ${previous.file}` }] : []),
    ...(manifest.day === previous.day ? [{ file, reason: `its day is also that of ${previous.file}` }] : []),
  ];
}

function rangeProblem(
  { day }: CoveringManifest,
  { origin, start, from }: CoveringManifest['logs'][number],
  before: CoveredLog | undefined,
): string {
  if (before === undefined) return '';
  if (start !== before.start)
    return `${origin}: the export starts at ${start}, and at ${before.start} by earlier days`;
  return from < before.to
    ? `${origin}: ${day} begins at ${from}, before the end of earlier days, ${before.to}`
    : '';
}

function gapText(origin: string, { from, to }: { from: number; to: number }): string {
  return `leaves ${from} to ${to - 1} of ${origin} are covered by no manifest: a day or more is missing before this one`;
}
