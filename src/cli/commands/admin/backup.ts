import type { Command } from 'commander';
import { readConfig } from '../../../config/config.js';
import { duration } from '../../../config/setting-types.js';
import { count } from '../../../proof/export/object-check.js';
import { printable } from '../../../protocol/printable.js';
import { parseFlag } from '../../audit/audit-flags.js';
import { type LogReport, verifyBackup } from '../../backup/verify-backup.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { getTrustRoots, readTrusted } from '../../input/trust-roots.js';
import { addHelp } from '../../output/help.js';
import { openProgress } from '../../output/progress.js';
import { runCheck } from '../../output/report-error.js';

type Flags = {
  dataDir?: string;
  trustRoots?: string;
  verifyUrl?: string;
  maxAge?: string;
  json?: boolean;
};

const HELP = `
Restore a backup into a database of its own, and run this with its DATABASE_URL: it derives every log again from the rows of the
submissions, and compares hashes, tiles and checkpoints in the database, and the published log, with that. A backup that lacks
the newest leaves is fine: it says how many. It changes nothing.

Exit codes: 0 the backup contradicts nothing, 1 it is damaged or contradicts the published log, 2 could not check,
            4 its newest batch is older than --max-age`;

const EXAMPLES = [
  'createdb drill && pg_restore --no-owner --dbname drill attest.dump',
  'DATABASE_URL=postgres://localhost/drill attest backup verify --verify-url https://attest.example.com/verify',
  'attest backup verify --trust-roots trust_roots.json --max-age 26h --json',
];

const NET = { retryDelaysMs: [1_000, 3_000], timeoutMs: 30_000 };
const TOO_OLD = 4;

/** `attest backup`. */
export function addBackup(program: Command, cli: Cli): void {
  const backup = addHelp(program.command('backup'), HELP, EXAMPLES);
  addHelp(backup.command('verify'), HELP, EXAMPLES)
    .description('check that a restored backup does not contradict the published log')
    .option('--trust-roots <file>', 'trust roots: a copy of trust_roots.json')
    .option('--verify-url <url>', 'base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)')
    .option('--max-age <duration>', 'fail if the newest batch is older, such as 26h')
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .option('--json', 'print JSON')
    .action((flags: Flags) => runCheck(cli, flags, () => verify(cli, flags)));
}

async function verify(cli: Cli, flags: Flags): Promise<void> {
  const { trustRoots, verifyUrl, json } = flags;
  const maxAgeMs =
    flags.maxAge === undefined ? undefined : parseFlag('--max-age', duration('1m', '3650d'), flags.maxAge);
  const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'backup' }));
  const roots = await getTrustRoots(cli.env, {
    ...(trustRoots !== undefined && { trustRoots }),
    ...(verifyUrl !== undefined && { verifyUrl }),
  });
  const trust = readTrusted(roots.document);
  const { withBackup } = await import('../../../server/process/run.js');
  await withBackup(config, async (backup) => {
    const logs = await backup.list();
    if (logs.length === 0)
      throw new UsageError('the database has no log: is DATABASE_URL that of the restored backup?');
    const total = logs.reduce((sum, { leaves }) => sum + leaves, 0);
    const progress = openProgress({ output: cli.stderr, now: Date.now }, 'reading leaves', total, String);
    const net = { ...NET, signal: new AbortController().signal };
    const reports: LogReport[] = [];
    for (const log of logs) {
      reports.push(await verifyBackup({ net, backup, trust, onRead: progress.add }, log));
      progress.clear();
    }
    const newest = Math.max(...reports.map(({ sealedAt }) => sealedAt?.getTime() ?? 0));
    const isTooOld = maxAgeMs !== undefined && cli.now().getTime() - newest > maxAgeMs;
    cli.exitCode = exitCodeOf(reports, isTooOld);
    if (json) print(cli, JSON.stringify({ logs: reports.map(reportJson), is_too_old: isTooOld }));
    else {
      for (const line of reports.flatMap(formatReport)) print(cli, printable(line));
      if (isTooOld) print(cli, `the newest batch is older than ${flags.maxAge}`);
    }
  });
}

function exitCodeOf(reports: readonly LogReport[], isTooOld: boolean): number {
  if (reports.some(({ problems }) => problems.length > 0)) return 1;
  if (reports.some(({ unchecked }) => unchecked !== undefined)) return 2;
  return isTooOld ? TOO_OLD : 0;
}

function formatReport(report: LogReport): string[] {
  const { origin, leaves, batches, sealedAt, publishedSize, missing, problems, unchecked } = report;
  const has = `${count(leaves, 'leaf', 'leaves')}, ${count(batches, 'batch', 'batches')}${sealedAt === undefined ? '' : `, the newest of ${sealedAt.toISOString()}`}`;
  const verdict =
    problems.length > 0
      ? 'CONTRADICTS'
      : unchecked !== undefined
        ? 'could not be compared'
        : `contradicts nothing, lacks ${missing ?? 0} of ${publishedSize ?? 0} published leaves`;
  return [
    `${origin}: ${verdict} (${has})`,
    ...problems.map((problem) => `  ${problem}`),
    ...(unchecked === undefined ? [] : [`  ${unchecked}`]),
  ];
}

function reportJson({ sealedAt, publishedSize, unchecked, ...report }: LogReport) {
  return {
    ...report,
    sealed_at: sealedAt?.toISOString() ?? null,
    published_size: publishedSize ?? null,
    missing: report.missing ?? null,
    unchecked: unchecked ?? null,
  };
}
