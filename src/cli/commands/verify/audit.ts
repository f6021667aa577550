import type { Command } from 'commander';
import { publicUrl } from '../../../config/setting-types.js';
import type { Trust } from '../../../proof/verify/trust.js';
import { type AuditFlags, addWatchFlags, parseFlag, readWatchFlags } from '../../audit/audit-flags.js';
import { listBatchNotes, readBundleNotes } from '../../audit/checkpoint/audit-checkpoints.js';
import { runAudit } from '../../audit/run-audit.js';
import { selectLogs, watchLogs } from '../../audit/select-logs.js';
import { readStatements } from '../../audit/source/statements.js';
import type { WatchedLog } from '../../audit/watched-log.js';
import { type Cli, UsageError } from '../../cli.js';
import { addClientFlags } from '../../flags/client-flags.js';
import { openClient } from '../../flags/open-client.js';
import { getTrustRoots, readTrusted } from '../../input/trust-roots.js';
import { runCheck } from '../../output/report-error.js';

const HELP = `
Reads the published entries and recomputes every tile and the root of each checkpoint: the current one, that of the last
audit, of each --bundle, and with --batches of every batch of the project. Matching roots prove that all are checkpoints
of one append-only tree. Each entry must be a leaf record with a key of the trust roots. Its signature is verified if its
statement is among --statements; \`attest verify\` verifies that of one bundle.

URL is where trust_roots.json is served (a service does below /verify, which may be left out), or with --trust-roots where
the log is. Audits all logs of the trust roots, or
those of one --environment, or one --origin. --mirror and --witness compare what others show of the log: two signed
checkpoints that contradict each other are a split view, and --evidence keeps them. They prove that the log is not
append-only, to anybody.

--state resumes after the last audit, also one that was killed, and detects a log that was truncated or rewritten since.
--follow audits again and again; a log that cannot be reached is retried, and is an alarm after --max-age only. An alarm
that a log is not intact ends it, unless it should --keep-going; SIGINT and SIGTERM end it cleanly.

Exit codes: 0 the log is intact, 1 the log is not intact, 2 could not check, 3 split view,
            4 nothing new for longer than --max-age, or no --quorum or --policy
Of several the first of 3, 1, 4, 2.

Examples:
  $ attest audit https://attest.example.com/verify
  $ attest audit --environment live --trust-roots trust_roots.json --state audit.json
  $ attest audit --bundle model.bin.bundle --bundle report.bundle --json
  $ attest audit --trust-roots trust_roots.json --state audit.json --follow --max-age 1h --mirror https://mirror.example \\
      --witness https://witness.example --evidence evidence --webhook https://hooks.example/audit --metrics 127.0.0.1:9100`;

/** `attest audit`. */
export function addAudit(program: Command, cli: Cli): void {
  const command = addClientFlags(
    program
      .command('audit')
      .argument('[url]', 'where trust_roots.json, or with --trust-roots the log, is served'),
    'logs to audit (default: all), and environment of the key for --batches (default: live)',
  )
    .option('--trust-roots <file>', 'trust roots: a copy of trust_roots.json')
    .option('--verify-url <url>', 'base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)')
    .option('--state <file>', 'file with the end of the last audit; written if the log is intact')
    .option('--bundle <file...>', 'also check the checkpoints of these bundles')
    .option('--batches', "also check the checkpoints of all batches of the API key's project");
  addWatchFlags(command)
    .option('--json', 'print one JSON object a line: each event, and without --follow a report')
    .addHelpText('after', HELP)
    .action((url: string | undefined, flags: AuditFlags) =>
      runCheck(cli, flags, () => audit(cli, url, flags)),
    );
}

async function audit(cli: Cli, url: string | undefined, flags: AuditFlags): Promise<void> {
  const options = await readWatchFlags(cli.env, flags);
  const place = url === undefined ? undefined : parseFlag('the URL', publicUrl, url);
  const isLog = flags.trustRoots !== undefined;
  if (place !== undefined && flags.verifyUrl !== undefined)
    throw new UsageError('the URL and --verify-url exclude each other');
  const verify = place !== undefined && !isLog ? { verifyUrl: place } : {};
  const readRoots = () => getTrustRoots(cli.env, { ...flags, ...verify });
  const roots = await readRoots();
  const trust = readTrusted(roots.document);
  const notes = await readBundleNotes(flags.bundle ?? []);
  if (flags.batches) notes.push(...(await listBatchNotes(openClient(cli, flags))));
  const statements = await readStatements(flags.statements ?? [], trust);
  const watch = (trust: Trust) =>
    watchLogs(selectLogs(trust, flags, isLog ? place : undefined), { trust, notes, statements, options });
  const refresh = { logs: watch(trust), read: createReader(readRoots, roots.document, watch) };
  await runAudit(cli, { flags, options, refresh, trustOrigin: roots.origin });
}

/** Reads the trust roots again; the reader returns undefined if they have not changed. */
function createReader(
  readRoots: () => Promise<{ readonly document: unknown }>,
  first: unknown,
  watch: (trust: Trust) => WatchedLog[],
): () => Promise<WatchedLog[] | undefined> {
  let before = JSON.stringify(first);
  return async () => {
    const { document } = await readRoots();
    const now = JSON.stringify(document);
    if (now === before) return undefined;
    const logs = watch(readTrusted(document));
    before = now;
    return logs;
  };
}
