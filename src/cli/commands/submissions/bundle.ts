import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { count as countOf } from '../../../proof/export/object-check.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import { gatherIds, type IdFlags } from '../../fetch-bundles/bundle-ids.js';
import { type Fetched, fetchBundles } from '../../fetch-bundles/fetch-bundles.js';
import { renewBundle } from '../../fetch-bundles/renew-bundle.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { parseCount, parseDuration } from '../../flags/flag-values.js';
import { openClient } from '../../flags/open-client.js';
import { readBundleFile } from '../../input/bundle-file.js';
import { onInterruption } from '../../input/interruption.js';
import { assertSubmissionId } from '../../input/submission-id.js';
import { getTrustRoots, readTrusted } from '../../input/trust-roots.js';
import { openProgress } from '../../output/progress.js';
import { errorJson, errorText } from '../../output/report-error.js';
import { assertNew, writeOutput } from '../../output/write-output.js';
import { assertBuildId } from '../../submit/build.js';
import { openBundleFolder } from '../../submit/bundle-folder.js';

const FORMATS = ['json', 'sigstore.json', 'tlog-proof', 'ots', 'cose'] as const;

const RETRY_DELAYS_MS = [500, 1_000];
const REQUEST_TIMEOUT_MS = 15_000;

type Flags = ClientFlags &
  IdFlags & {
    format: (typeof FORMATS)[number];
    output?: string;
    bundles?: string;
    force?: boolean;
    renew?: string;
    trustRoots?: string;
    verifyUrl?: string;
    wait?: boolean;
    timeout: string;
    concurrency: string;
    json?: boolean;
  };

const HELP = `
Formats: json is the bundle for \`attest verify\`; sigstore.json the Sigstore bundle in it, for cosign and other tools;
tlog-proof a C2SP tlog-proof; ots an OpenTimestamps proof of the submission's leaf_sha256, once a Bitcoin block has it;
cose a COSE receipt (RFC 9942), once the log has two submissions.

--bundles writes many bundles, as <id>.bundle.json: of the IDs given, of those in a file (--ids-from, a line each), and of a
build. A bundle that is there already is kept, so that the same command continues one that was interrupted; another file in
its place is an error. \`attest verify FOLDER --bundles\` finds the files by their digests, whatever the names.

--renew adds the newest checkpoint of the log, with a proof, to a bundle that was fetched earlier, or with --format tlog-proof
writes that proof alone. It needs no API key and no API process, only the public log where the trust roots say that it is.
${CLIENT_HELP}

Examples:
  $ attest bundle sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T -o model.bin.bundle
  $ attest bundle sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --format sigstore.json > model.bin.sigstore.json
  $ attest bundle --build ci-4711 --wait --timeout 5m --bundles proofs/
  $ attest bundle --renew model.bin.bundle --trust-roots trust_roots.json -o model.bin.bundle
  $ attest submit dist/*.tgz --quiet | attest bundle --ids-from - --wait --bundles proofs/`;

/** `attest bundle`. */
export function addBundle(program: Command, cli: Cli): void {
  addClientFlags(program.command('bundle'))
    .argument('[id...]', 'submission IDs, sub_...')
    .option('--ids-from <file>', 'also the IDs in this file, one a line; - is standard input')
    .option('--build <id>', 'also the submissions of this build')
    .option('--bundles <dir>', 'write each bundle to <dir>/<id>.bundle.json')
    .option('--force', 'overwrite the output file, or other files in <dir>')
    .option('--renew <file>', 'in place of an ID an earlier bundle, for a proof out of the public log')
    .option('--trust-roots <file>', 'of --renew: a copy of trust_roots.json')
    .option(
      '--verify-url <url>',
      'of --renew: base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)',
    )
    .addOption(new Option('--format <format>', 'bundle format').choices(FORMATS).default('json'))
    .option('-o, --output <file>', 'output file of one bundle (default: standard output)')
    .option('--wait', 'wait until the submissions are witnessed')
    .option('--timeout <duration>', 'timeout of --wait, 1s to 30d', '10m')
    .option('--concurrency <count>', 'bundles at a time, 1 to 64', '8')
    .option('--json', 'print one line of JSON per bundle of --bundles, and errors as JSON')
    .addHelpText('after', HELP)
    .action((ids: string[], flags: Flags) => bundle(cli, ids, flags));
}

async function bundle(cli: Cli, ids: readonly string[], flags: Flags): Promise<void> {
  const { build, idsFrom, bundles, output, format } = flags;
  const timeoutMs = parseDuration('--timeout', flags.timeout, '1s', '30d');
  const concurrency = parseCount('--concurrency', flags.concurrency, 64);
  const [id] = ids;
  if (flags.renew !== undefined) {
    if ([id, build, idsFrom, bundles].some((given) => given !== undefined))
      throw new UsageError('--renew goes with no ID, --ids-from, --build or --bundles');
    await renew(cli, flags.renew, flags);
    return;
  }
  if (id === undefined && build === undefined && idsFrom === undefined) {
    throw new UsageError("missing required argument 'id', and neither --build nor --ids-from is given");
  }
  if (build !== undefined) assertBuildId('--build', build);
  if (bundles !== undefined) {
    if (output !== undefined || format !== 'json')
      throw new UsageError('--bundles goes with no --output, and with no --format but json');
    await fetchMany(cli, ids, { ...flags, bundles }, { timeoutMs, concurrency });
    return;
  }
  if (id === undefined || ids.length > 1 || build !== undefined || idsFrom !== undefined) {
    throw new UsageError('several IDs, --ids-from and --build need --bundles <dir>');
  }
  await fetchBundle(cli, id, flags, timeoutMs);
}

async function fetchBundle(
  cli: Cli,
  id: string,
  { format, output, wait, ...flags }: Flags,
  timeoutMs: number,
): Promise<void> {
  assertSubmissionId(id);
  if (output !== undefined) assertNew(output, flags);
  const { attestations } = openClient(cli, flags);
  if (wait) await attestations.waitUntilWitnessed(id, { timeoutMs });
  const { data } = await attestations.downloadBundle({ id, format: `bundle.${format}` });
  if (output === undefined) {
    cli.stdout.write(data);
    return;
  }
  await writeOutput(output, data);
  printError(cli, `wrote ${output}, ${data.length} bytes`);
}

async function renew(cli: Cli, file: string, { format, output, ...flags }: Flags): Promise<void> {
  if (format !== 'json' && format !== 'tlog-proof')
    throw new UsageError('--renew goes with --format json and tlog-proof');
  if (output !== undefined && resolve(output) !== resolve(file)) assertNew(output, flags);
  const bundle = await readBundleFile(file);
  const { document } = await getTrustRoots(cli.env, flags);
  const { signal } = new AbortController();
  const net = { signal, retryDelaysMs: RETRY_DELAYS_MS, timeoutMs: REQUEST_TIMEOUT_MS };
  const { json, tlogProof, size } = await renewBundle(net, bundle, readTrusted(document));
  const data = format === 'json' ? json : tlogProof;
  if (output === undefined) {
    cli.stdout.write(data);
    return;
  }
  await writeOutput(output, data);
  printError(cli, `wrote ${output}, with a proof in the log of ${countOf(size, 'leaf', 'leaves')}`);
}

async function fetchMany(
  cli: Cli,
  given: readonly string[],
  flags: Flags & { bundles: string },
  { timeoutMs, concurrency }: { timeoutMs: number; concurrency: number },
): Promise<void> {
  const { bundles: dir, force = false, wait = false, json } = flags;
  const client = openClient(cli, flags);
  const now = () => cli.now().getTime();
  const count = { written: 0, kept: 0, failed: 0 };
  const interruption = onInterruption(cli, 'stopping after the bundles under way; repeat to exit at once');
  const { signal: stop } = interruption;
  try {
    const ids = await gatherIds(cli, given, flags, { client, signal: stop });
    const folder = openBundleFolder(dir, ids, { force, isContinued: true });
    const progress = openProgress(
      { output: cli.stderr, now },
      'fetching',
      ids.length,
      String,
      () => ' bundles',
    );
    const onFetched = (fetched: Fetched) => {
      progress.add(1);
      if (fetched.error !== undefined) progress.clear();
      count['error' in fetched ? 'failed' : fetched.isKept ? 'kept' : 'written']++;
      printFetched(cli, fetched, json);
    };
    await fetchBundles(ids, { client, folder, wait, timeoutMs, concurrency, stop, now, onFetched });
    progress.clear();
    const rest = ids.length - count.written - count.kept;
    const parts = [
      `wrote ${countOf(count.written, 'bundle')} to ${dir}`,
      `${count.kept} were there`,
      `${rest} are not`,
    ];
    printError(cli, `${parts.join(', ')}${stop.aborted ? ': the same command continues' : ''}`);
    if (count.failed > 0) cli.exitCode = 1;
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    interruption.end();
  }
}

function printFetched(cli: Cli, fetched: Fetched, json = false): void {
  const { id, error } = fetched;
  if ('file' in fetched) {
    if (json) print(cli, JSON.stringify({ id, bundle: fetched.file, is_kept: fetched.isKept }));
  } else if (json) print(cli, JSON.stringify({ id, error: errorJson(error) }));
  else printError(cli, `error: ${id}: ${errorText(error)}`);
}
