/** Submissions: nothing acknowledged is lost, moved or doubled, and nothing is there that nobody sent. */

import type { Acknowledged, Sent } from '../record.js';
import type { Evidence, Findings, HashedLog } from './check.js';
import type { SeenSubmission } from './observe.js';

/** Reports what does not hold. */
export function checkSubmissions(findings: Findings, evidence: Evidence, logs: readonly HashedLog[]): void {
  const { submissions } = evidence.observed.tables;
  const rows = new Map(submissions.map((row) => [row.id, row]));
  const byLog = new Map(logs.map((log) => [log.environment as string, indexLeaves(log)]));
  for (const made of evidence.record.acknowledged) {
    findings.looked('acknowledged submissions found');
    checkAcknowledged(findings, evidence, made, rows.get(made.id), byLog);
  }
  checkRows(findings, submissions, byLog);
  checkOrigins(findings, evidence);
  checkKeys(findings, evidence, rows);
  checkChanges(findings, evidence, rows);
}

type IndexedLog = { leaves: string[]; places: Map<string, number[]> };

function indexLeaves({ leaves }: HashedLog): IndexedLog {
  const hex = leaves.map((leaf) => leaf.toString('hex'));
  const places = new Map<string, number[]>();
  for (const [i, leaf] of hex.entries()) places.set(leaf, [...(places.get(leaf) ?? []), i]);
  return { leaves: hex, places };
}

/** In the log exactly once, at the index and with the leaf that its client was told; and in the tables as the same. */
function checkAcknowledged(
  findings: Findings,
  { owners, observed }: Evidence,
  made: Acknowledged,
  row: SeenSubmission | undefined,
  logs: ReadonlyMap<string, IndexedLog>,
): void {
  const log = logs.get(owners[made.owner] ?? '');
  const places = log?.places.get(made.leaf) ?? [];
  if (places.length === 0)
    findings.wrong('lost', `${made.id} was acknowledged and its leaf is not in the log`);
  else if (places.length > 1) findings.wrong('doubled', `${made.id} is in the log at ${places}`);
  else if (places[0] !== made.index)
    findings.wrong('moved', `${made.id} was acknowledged at ${made.index} and is at ${places[0]}`);
  if (row === undefined) findings.wrong('lost', `${made.id} was acknowledged and has no row`);
  else if (row.artifact !== made.artifact || row.leaf !== made.leaf || row.index !== made.index)
    findings.wrong('moved', `${made.id} is not what was acknowledged`);
  else if (row.project !== observed.tables.projects[made.owner])
    findings.wrong('stranger', `${made.id} belongs to another project than its key's`);
}

/** Rows and leaves are the same list. */
function checkRows(
  findings: Findings,
  submissions: readonly SeenSubmission[],
  logs: ReadonlyMap<string, IndexedLog>,
): void {
  for (const [environment, { leaves }] of logs) {
    const rows = submissions.filter((row) => row.environment === environment);
    if (rows.length !== leaves.length)
      findings.wrong('rows', `${environment} has ${rows.length} rows and ${leaves.length} leaves`);
    for (const [i, row] of rows.entries()) {
      findings.looked('rows compared with leaves');
      if (row.index !== i || row.leaf !== leaves[i])
        findings.wrong('rows', `${row.id} at place ${i} of ${environment} is not the log's leaf`);
    }
  }
}

/** Each submission was sent by its project; with a key it is there at most once, without one at most as often as sent. */
function checkOrigins(findings: Findings, { record, observed }: Evidence): void {
  const sent = new Map<string, Sent & { times: number }>();
  for (const line of record.sent)
    sent.set(line.artifact, { ...line, times: (sent.get(line.artifact)?.times ?? 0) + 1 });
  const found = new Map<string, number>();
  for (const { id, artifact, project } of observed.tables.submissions) {
    const origin = sent.get(artifact);
    found.set(artifact, (found.get(artifact) ?? 0) + 1);
    if (origin === undefined) findings.wrong('unsent', `${id} is there and nobody sent it`);
    else if (observed.tables.projects[origin.owner] !== project)
      findings.wrong('stranger', `${id} of ${origin.owner} is in another project`);
  }
  for (const [artifact, times] of found) {
    findings.looked('artifacts counted');
    const origin = sent.get(artifact);
    const most = origin?.key === undefined ? (origin?.times ?? times) : 1;
    if (times > most)
      findings.wrong('doubled', `${artifact}, sent as ${origin?.key}, is there ${times} times`);
  }
}

function checkKeys(
  findings: Findings,
  { record, observed }: Evidence,
  rows: ReadonlyMap<string, SeenSubmission>,
): void {
  const told = new Map<string, string>();
  for (const { key, id } of record.acknowledged) {
    if (key === undefined) continue;
    findings.looked('idempotency keys compared');
    const before = told.get(key);
    if (before !== undefined && before !== id)
      findings.wrong('key made two', `${key} was answered with ${before} and ${id}`);
    told.set(key, id);
  }
  for (const { key, resource } of observed.tables.keys) {
    const isSubmission = resource.startsWith('sub_');
    if (isSubmission && !rows.has(resource))
      findings.wrong('key of nothing', `${key} stands for ${resource}`);
    const answered = told.get(key);
    if (answered !== undefined && answered !== resource)
      findings.wrong('key made two', `${key} was answered with ${answered} and stands for ${resource}`);
  }
}

/** A correction holds, and of what was redacted nothing is left. */
function checkChanges(
  findings: Findings,
  { record }: Evidence,
  rows: ReadonlyMap<string, SeenSubmission>,
): void {
  const redacted = new Set(record.changed.filter(({ to }) => to === 'redacted').map(({ id }) => id));
  for (const { id, to, purl = '' } of record.changed) {
    findings.looked('corrections and redactions found');
    const row = rows.get(id);
    if (to === 'redacted') {
      if (row === undefined || row.metadata !== null || row.attested !== null || row.salt !== null)
        findings.wrong('not redacted', `${id} was redacted and has metadata`);
    } else if (!redacted.has(id) && !row?.metadata?.includes(purl))
      findings.wrong('not corrected', `${id} was corrected to ${purl} and is not`);
  }
}
