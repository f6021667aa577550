/** The verification of a folder against a folder of bundles, as text and JSON. */
import { count } from '../../proof/export/object-check.js';
import { printablePath } from '../../proof/set/path.js';
import { countFiles } from '../../proof/set/verify-set.js';
import { instantText } from '../../proof/verify/instant.js';
import type { Verdict } from '../../proof/verify/verify.js';
import { printable } from '../../protocol/printable.js';
import type { ProvenFacts } from './judge-bundle.js';
import type { MatchFinding } from './match-files.js';

/** What was found. Of files that are ok only the number is kept, unless all findings are wanted. */
export type FolderReport = {
  readonly counts: Record<MatchFinding['status'], number>;
  readonly findings: MatchFinding[];
  readonly bundles: number;
  /** Projects that attested, in the order of the bundles. */
  readonly projects: ReadonlySet<string>;
  /** The earliest and the latest time by which a file existed; `undated`: bundles without one. */
  readonly times: { readonly earliest?: Date; readonly latest?: Date; readonly undated: number };
};

type Bad = Exclude<MatchFinding['status'], 'ok'>;

const BAD = ['changed', 'missing', 'extra', 'failed', 'could_not_check'] as const;

/** How many findings are printed of each kind; --json has all. */
const MAX_PRINTED = 20;
const MAX_PROJECTS = 5;
const LABEL_WIDTH = 11;

const LABELS: Readonly<Record<Bad, string>> = {
  changed: 'changed',
  missing: 'missing',
  extra: 'extra',
  failed: 'FAILED',
  could_not_check: 'not checked',
};

/** Gathers findings. */
export async function gatherFindings(
  found: AsyncIterable<MatchFinding>,
  isEachKept: boolean,
): Promise<Pick<FolderReport, 'counts' | 'findings'>> {
  const counts = { ok: 0, changed: 0, missing: 0, extra: 0, failed: 0, could_not_check: 0 };
  const findings: MatchFinding[] = [];
  for await (const finding of found) {
    counts[finding.status]++;
    if (isEachKept || finding.status !== 'ok') findings.push(finding);
  }
  return { counts, findings };
}

/** Gathers what verified bundles prove. */
export function gatherFacts(facts: Iterable<ProvenFacts>): Pick<FolderReport, 'projects' | 'times'> {
  const projects = new Set<string>();
  let [earliest, latest]: (Date | undefined)[] = [];
  let undated = 0;
  for (const { project, existedBy } of facts) {
    projects.add(project);
    if (existedBy === undefined) undated++;
    else if (earliest === undefined || existedBy < earliest) earliest = existedBy;
    if (existedBy !== undefined && (latest === undefined || existedBy > latest)) latest = existedBy;
  }
  return { projects, times: { ...(earliest && { earliest }), ...(latest && { latest }), undated } };
}

/** The verdict over all. Files without a bundle count unless `extraOk`. */
export function verdictOfFolder({ counts }: FolderReport, extraOk: boolean): Verdict {
  const extra = extraOk ? 0 : counts.extra;
  if (counts.failed + counts.changed + counts.missing + extra > 0) return 'not_verified';
  return counts.could_not_check > 0 ? 'could_not_check' : 'verified';
}

/** Lines of text: each finding that is not in order, the counts, the source of trust, and a summary. */
export function formatFolder(report: FolderReport, trustOrigin: string, extraOk: boolean): string[] {
  const { counts, findings, bundles } = report;
  const shown = BAD.filter((status) => status !== 'extra' || !extraOk);
  const lines = shown.flatMap((status) => {
    const own = findings.filter((finding) => finding.status === status).slice(0, MAX_PRINTED);
    const left = counts[status] - own.length;
    const texts = [...own.map(formatFinding), ...(left > 0 ? [`and ${left} more`] : [])];
    return texts.map((text) => `${LABELS[status].padEnd(LABEL_WIDTH)}  ${text}`);
  });
  const all = Object.entries(counts).map(([status, number]) => `${number} ${status.replaceAll('_', ' ')}`);
  return [
    ...lines,
    `Files: ${all.join(', ')}; ${count(bundles, 'bundle')}`,
    '',
    `Trusting ${trustOrigin}`,
    '',
    summarizeFolder(report, extraOk),
  ].map(printable);
}

function formatFinding(finding: MatchFinding): string {
  const path = printablePath(finding.path ?? '');
  if (!('bundle' in finding)) return path;
  const bundle = printablePath(finding.bundle);
  if (!('reason' in finding)) return `${path} (${bundle})`;
  return finding.path === undefined
    ? `${bundle}: ${finding.reason}`
    : `${path} (${bundle}): ${finding.reason}`;
}

/** The same for --json, in snake_case. Omits times and projects unless all is verified. */
export function folderJson(report: FolderReport, trustOrigin: string, extraOk: boolean): object {
  const { counts, findings, bundles, projects, times } = report;
  const verdict = verdictOfFolder(report, extraOk);
  const of = (status: Bad) => findings.filter((finding) => finding.status === status);
  const pathsOf = (status: Bad) => [status, of(status).flatMap(({ path }) => path ?? [])];
  const openBundles = (status: 'failed' | 'could_not_check') =>
    of(status).map(({ status: _, ...finding }) => finding);
  return {
    verdict,
    summary: summarizeFolder(report, extraOk),
    trust_roots: trustOrigin,
    ...(verdict === 'verified' && {
      existed_by: { earliest: times.earliest ?? null, latest: times.latest ?? null },
      projects: [...projects],
    }),
    bundles,
    files: { ...counts, paths: Object.fromEntries(BAD.map(pathsOf)) },
    missing: of('missing').map(({ status: _, ...finding }) => finding),
    failed: openBundles('failed'),
    could_not_check: openBundles('could_not_check'),
  };
}

function summarizeFolder(report: FolderReport, extraOk: boolean): string {
  const { counts, projects, times } = report;
  const verdict = verdictOfFolder(report, extraOk);
  if (verdict !== 'verified') {
    const bad = BAD.filter((status) => counts[status] > 0 && !(status === 'extra' && extraOk));
    const counted = bad.map((status) => `${counts[status]} ${status.replaceAll('_', ' ')}`).join(', ');
    return verdict === 'not_verified'
      ? `Not verified: the files of the folder are not those of the bundles (${counted}).`
      : `Could not be checked: ${count(counts.could_not_check, 'bundle')}.`;
  }
  const names = [...projects].slice(0, MAX_PROJECTS);
  const more = projects.size > names.length ? ` and ${projects.size - names.length} more` : '';
  const which = projects.size === 1 ? 'the project' : 'the projects';
  const verb = counts.ok === 1 ? 'was' : 'were';
  const what = `${countFiles(counts.ok)} ${verb} attested by ${which} ${names.join(', ')}${more}`;
  const extra = counts.extra === 0 ? '' : ` ${countFiles(counts.extra)} without a bundle were let pass.`;
  if (times.latest === undefined) return `${what}; no witness says when.${extra}`;
  const undated = times.undated === 0 ? '' : `, but for ${times.undated} no witness says when`;
  return `${what} and existed no later than ${instantText(times.latest)}${undated}.${extra}`;
}
