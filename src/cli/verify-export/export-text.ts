/** The verification of an export as text and as JSON. */
import type { CoveredLog } from '../../proof/export/coverage.js';
import { count } from '../../proof/export/object-check.js';
import { instantText } from '../../proof/verify/instant.js';
import { type ExportProblem, type ExportSummary, type Tally, verdictOf } from './tally.js';

const LABEL_WIDTH = 11;

/** Lines of text: counts, times, what is covered, problems, the source of trust, and a summary. */
export function formatExport(tally: Tally, trustOrigin: string): string[] {
  return [
    labelled('lines', linesText(tally)),
    labelled('objects', String(tally.objects)),
    labelled('manifests', `${tally.manifests} verified`),
    ...(tally.earliest && tally.latest
      ? [
          labelled(
            'existed by',
            `${instantText(tally.earliest)} at the earliest, ${instantText(tally.latest)} at the latest`,
          ),
        ]
      : []),
    ...tally.exports.flatMap(formatSummary),
    ...uncoveredText(tally),
    ...ignoredText(tally),
    ...tally.problems.list.map(formatProblem),
    ...moreText(tally.problems),
    '',
    `Trusting ${trustOrigin}`,
    '',
    summarize(tally),
  ];
}

/** The same for --json, in snake_case. */
export function exportJson(tally: Tally, trustOrigin: string): object {
  const { lines, problems, uncovered } = tally;
  return {
    verdict: verdictOf(tally),
    summary: summarize(tally),
    trust_roots: trustOrigin,
    lines,
    objects: tally.objects,
    manifests: tally.manifests,
    existed_by: { earliest: tally.earliest ?? null, latest: tally.latest ?? null },
    exports: tally.exports.map(summaryJson),
    ...(tally.ignored.size > 0 && { ignored: [...tally.ignored] }),
    not_covered: { objects: uncovered.files, total: uncovered.total },
    problems: problems.list.map(({ file, line, reason, verdict }) => ({
      file,
      line: line ?? null,
      reason,
      verdict,
    })),
    problems_total: problems.total,
  };
}

function summaryJson({ exportId, firstDay, lastDay, isComplete, ...summary }: ExportSummary): object {
  return { id: exportId, ...summary, first_day: firstDay, last_day: lastDay, is_complete: isComplete };
}

function linesText({ lines }: Tally): string {
  const others: [number, string][] = [
    [lines.not_verified, 'not verified'],
    [lines.could_not_check, 'could not be checked'],
  ];
  const parts = others.filter(([number]) => number > 0).map(([number, text]) => `, ${number} ${text}`);
  return `${lines.verified} verified${parts.join('')}`;
}

function formatSummary({ exportId, project, environment, ...days }: ExportSummary): string[] {
  const range = days.firstDay === days.lastDay ? days.firstDay : `${days.firstDay} to ${days.lastDay}`;
  const end = days.isComplete ? 'complete' : 'the last day is not complete';
  return [
    labelled(
      project === null ? 'archive' : 'export',
      `${exportId}, ${project ?? 'all projects'}, ${environment}: ${range}, ${end}`,
    ),
    ...days.logs.map((log) => labelled('', logText(log))),
  ];
}

function logText({ origin, start, from, to, gaps }: CoveredLog): string {
  const missing = gaps.map((gap) => `, not ${gap.from} to ${gap.to}`);
  return `${origin}: from size ${from} to ${to}${missing.join('')}; the export starts at ${start}`;
}

function uncoveredText({ uncovered: { files, total } }: Tally): string[] {
  if (total === 0) return [];
  const names = total === 1 ? files.join('') : `${files[0]} and ${total - 1} more`;
  return [labelled('', `not covered by a manifest yet: ${names}`)];
}

function ignoredText({ ignored }: Tally): string[] {
  if (ignored.size === 0) return [];
  return [labelled('', `not known to this version, and ignored: ${[...ignored].join(', ')}`)];
}

function formatProblem({ file, line, reason, verdict }: ExportProblem): string {
  const place = line === undefined ? file : `${file}:${line}`;
  return labelled(verdict === 'not_verified' ? 'FAILED' : 'not checked', `${place}: ${reason}`);
}

function moreText({ list, total }: Tally['problems']): string[] {
  return total > list.length ? [labelled('', `and ${count(total - list.length, 'more problem')}`)] : [];
}

function summarize(tally: Tally): string {
  const { problems, objects, manifests, uncovered } = tally;
  const verdict = verdictOf(tally);
  if (verdict !== 'verified') {
    const opening = verdict === 'not_verified' ? 'Not verified' : 'Could not be checked';
    return `${opening}: ${count(problems.total, 'problem')} in ${count(objects, 'object')} and ${count(manifests, 'verified manifest')}.`;
  }
  if (objects === 0) return 'The manifest is verified; its objects were not checked.';
  const what = `All ${count(tally.lines.verified, 'line')} of ${count(objects, 'object')} are verified`;
  if (uncovered.total === 0) return `${what}, and the manifests show no object missing.`;
  return `${what}. No manifest covers ${count(uncovered.total, 'object')}: nothing proves that none is missing.`;
}

function labelled(label: string, text: string): string {
  return `${label.padEnd(LABEL_WIDTH)}  ${text}`;
}
