import type { Command } from 'commander';
import { readTrust, type Trust, type TrustedLog } from '../../proof/verify/trust.js';
import { environmentName } from '../../protocol/environment.js';
import { listBatchNotes, readBundleNotes, type SourcedNote } from '../audit/audit-checkpoints.js';
import { readAuditState, writeAuditState } from '../audit/audit-state.js';
import { type AuditOptions, auditLog, type Finding } from '../audit/audit-walk.js';
import { type Cli, print, printable, UsageError } from '../cli.js';
import { addClientFlags, type ClientFlags, openClient } from '../flags/client-flags.js';
import { getTrustRoots } from '../input/trust-roots.js';
import { openProgress, type Progress } from '../output/progress.js';
import { runCheck } from '../output/report-error.js';

type Flags = ClientFlags & {
  trustRoots?: string;
  verifyUrl?: string;
  state?: string;
  bundle?: string[];
  batches?: boolean;
  json?: boolean;
};

const HELP = `
Reads the published entries and recomputes the root of each checkpoint: the current one, that of the last audit, of each
--bundle, and with --batches of every batch of the project. Matching roots prove that all are checkpoints of one
append-only tree. Each entry must be a leaf record with a key of the trust roots; \`attest verify\` checks its signature.

Audits all logs of the trust roots, or those of one --environment. --state resumes after the last audit and detects a log
that was truncated or rewritten since. It skips older batches and rejects older bundles: audit those without --state.
Keep two signed checkpoints that contradict each other: they prove that the log is not append-only.

Exit codes: 0 the log is intact, 1 the log is not intact, 2 could not check

Examples:
  $ attest audit
  $ attest audit --environment live --trust-roots trust_roots.json --state audit.json
  $ attest audit --bundle model.bin.bundle --bundle report.bundle --json`;

/** `attest audit`. */
export function addAudit(program: Command, cli: Cli): void {
  addClientFlags(
    program.command('audit'),
    'logs to audit (default: all), and environment of the key for --batches (default: live)',
  )
    .description('check that the public log is complete and append-only')
    .option('--trust-roots <file>', 'trust roots: a copy of trust_roots.json')
    .option('--verify-url <url>', 'base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)')
    .option('--state <file>', 'file with the end of the last audit; written if the log is intact')
    .option('--bundle <file...>', 'also check the checkpoints of these bundles')
    .option('--batches', "also check the checkpoints of all batches of the API key's project")
    .option('--json', 'print the report as JSON')
    .addHelpText('after', HELP)
    .action((flags: Flags) => runCheck(cli, flags, () => audit(cli, flags)));
}

async function audit(cli: Cli, flags: Flags): Promise<void> {
  const roots = await getTrustRoots(cli.env, flags);
  const { trust, problems } = readTrust(roots.document);
  if (trust === undefined)
    throw new UsageError(
      `the trust roots cannot be read: ${problems[0]?.path || 'the document'} ${problems[0]?.message}`,
    );
  const notes = await readBundleNotes(flags.bundle ?? []);
  if (flags.batches) notes.push(...(await listBatchNotes(openClient(cli, flags))));
  const state = flags.state === undefined ? new Map() : await readAuditState(flags.state);
  const findings: Finding[] = [];
  const logs = selectLogs(trust, flags);
  assertLogsSelected(notes, logs);
  for (const log of logs) findings.push(await auditWithProgress(cli, { trust, notes, state }, log));
  const isIntact = findings.every(({ problems: found }) => found.length === 0);
  if (flags.state !== undefined && isIntact) await writeAuditState(flags.state, state);
  cli.exitCode = isIntact ? 0 : 1;
  if (flags.json) print(cli, JSON.stringify(findingsJson(findings, roots.origin)));
  else for (const line of formatFindings(findings, roots.origin)) print(cli, printable(line));
}

function selectLogs({ logs }: Trust, { environment }: Flags): readonly TrustedLog[] {
  const wanted = logs.filter(
    (log) => environment === undefined || environmentName(log.environment) === environment,
  );
  if (wanted.length === 0) throw new UsageError('the trust roots have no such log');
  const unpublished = wanted.find(({ url }) => url === '');
  if (unpublished)
    throw new UsageError(`the trust roots do not say where ${unpublished.key.name} is published`);
  return wanted;
}

/** Throws UsageError if a checkpoint's log is not audited: it would pass unchecked. */
function assertLogsSelected(notes: readonly SourcedNote[], logs: readonly TrustedLog[]): void {
  for (const { note, from } of notes) {
    const [origin = ''] = note.split('\n', 1);
    if (!logs.some(({ key }) => key.name === origin)) {
      throw new UsageError(`${from} is of the log ${origin}, which is not among those to audit`);
    }
  }
}

/** Audits a log and shows a progress bar. */
async function auditWithProgress(
  cli: Cli,
  walk: Omit<AuditOptions, 'startProgress'>,
  log: TrustedLog,
): Promise<Finding> {
  const output = { output: cli.stderr, now: () => cli.now().getTime() };
  let progress: Progress | undefined;
  const startProgress = (entries: number) => {
    progress = openProgress(output, `reading ${printable(log.key.name)}`, entries, String);
    return progress.add;
  };
  return auditLog({ ...walk, startProgress }, log).finally(() => progress?.clear());
}

function formatFindings(findings: readonly Finding[], trustOrigin: string): string[] {
  return [...findings.flatMap(formatFinding), '', `Trusting ${trustOrigin}`];
}

function formatFinding({ log, checkpoint, size, read, confirmed, problems }: Finding): string[] {
  const name = log.key.name;
  if (problems.length > 0) return [`FAILED  ${name}`, ...problems.map((problem) => `        ${problem}`)];
  if (checkpoint === undefined || size === 0) return [`ok      ${name}: the log is empty`];
  const others =
    confirmed === 0 ? '' : ` and that of ${confirmed} more ${confirmed === 1 ? 'checkpoint' : 'checkpoints'}`;
  return [
    `ok      ${name}: ${size} ${size === 1 ? 'entry' : 'entries'}, ${read} read now; its root${others} ${confirmed === 0 ? 'follows' : 'follow'} from them`,
  ];
}

/** The findings for --json, in snake_case like the service's own JSON. */
function findingsJson(findings: readonly Finding[], trustOrigin: string): object {
  return {
    verdict: findings.every(({ problems }) => problems.length === 0) ? 'intact' : 'not_intact',
    trust_roots: trustOrigin,
    logs: findings.map(({ log, checkpoint, size, read, confirmed, problems }) => ({
      origin: log.key.name,
      environment: environmentName(log.environment),
      checkpoint,
      tree_size: size,
      entries_read: read,
      checkpoints_confirmed: confirmed,
      problems,
    })),
  };
}
