import { basename } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { PackageURL } from 'packageurl-js';
import { ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../../client/client.js';
import { mapConcurrent } from '../../audit/source/map-concurrent.js';
import { type Cli, UsageError } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { parseCount, parseDuration } from '../../flags/flag-values.js';
import { type MetadataFlags, readMetadata } from '../../flags/metadata-flags.js';
import { openClient } from '../../flags/open-client.js';
import { inputFileSize } from '../../input/input-file.js';
import { onInterruption } from '../../input/interruption.js';
import { openProgress } from '../../output/progress.js';
import { addFolderFlags, FOLDER_HELP, isFolder, listFolder } from '../../sets/folder-files.js';
import { findNotBefore } from '../../sets/not-before.js';
import { type FileResult, hashFile, type MakeItem, submitHashed } from './submit-files.js';
import { openReport } from './submit-report.js';
import { type SetFlags, submitSet } from './submit-set.js';

type Flags = ClientFlags &
  MetadataFlags &
  SetFlags & {
    each?: boolean;
    verifyUrl?: string;
    trustRoots?: string;
    lenient?: boolean;
    wait?: boolean;
    timeout: string;
    concurrency: string;
    quiet?: boolean;
    json?: boolean;
  };

const HELP = `
Hashes files locally and submits the hashes, up to 1,000 in a call; file contents are never sent. Prints ID, status and file of each submission,
in the order of the files. /dev/stdin is standard input. The default metadata is a package URL with the file's name
(pkg:generic/<name>?checksum=sha256:<hash>, schema purl).

Of a folder it makes a set, whose head is submitted in one call: the set file has each file's path in the folder, its hash
and a salt. Keep it with the bundle: \`attest verify\` takes both, \`attest set\` shows one file of it. It is written before the submission.
With --each, each file of the folder is a submission. --not-before puts the newest checkpoint of the log into the head, which
proves that the set was closed after it.
${FOLDER_HELP}
${CLIENT_HELP}

Examples:
  $ attest submit dist/*.tgz --wait
  $ attest submit art/ --set run.set.json --wait --bundle run.bundle.json
  $ attest submit art/ --exclude '*.tmp' --not-before
  $ attest submit report.json --schema intoto.test_result.v0.1 --metadata @result.json
  $ attest submit model.bin --metadata '{"schema": "purl", "purl": "pkg:huggingface/acme/model@1"}' --json`;

/** `attest submit`. */
export function addSubmit(program: Command, cli: Cli): void {
  addFolderFlags(addClientFlags(program.command('submit')))
    .description('hash files, or a folder as one set, and submit the hashes')
    .argument('<file...>', 'files, or one folder, to attest')
    .option('--set <file>', 'set file to write of a folder (default: <folder>.set.json)')
    .option('--force', 'overwrite set file and bundle')
    .option('--not-before', "put the log's newest checkpoint into the set")
    .option('--trust-roots <file>', 'trust roots for --not-before: a copy of trust_roots.json')
    .option('--verify-url <url>', 'base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)')
    .option('--each', 'submit each file of a folder by itself')
    .option('-o, --bundle <file>', 'write the bundle of the set; needs --wait')
    .option('--schema <name>', 'schema of the metadata')
    .option('--metadata <json>', 'metadata for every file, as JSON or @<file>')
    .option('--lenient', 'accept metadata that fails its schema')
    .option('--wait', 'wait until the submissions are witnessed')
    .option('--timeout <duration>', 'timeout of --wait, 1s to 30d', '10m')
    .option('--concurrency <count>', 'files in parallel, 1 to 64', '4')
    .option('--quiet', 'print only the IDs')
    .option('--json', 'print one line of JSON per file')
    .addHelpText('after', HELP)
    .action((files: string[], flags: Flags) => submit(cli, files, flags));
}

async function submit(cli: Cli, given: readonly string[], flags: Flags): Promise<void> {
  const folder = findFolder(given, flags);
  const concurrency = parseCount('--concurrency', flags.concurrency, 64);
  const timeoutMs = parseDuration('--timeout', flags.timeout, '1s', '30d');
  const metadata = await readMetadata(flags);
  const client = openClient(cli, flags);
  if (folder === undefined) {
    const files = flags.each ? await listFolder(given, flags) : given;
    await submitFiles(cli, files, { client, metadata, concurrency, timeoutMs, flags });
    return;
  }
  const submission = {
    client,
    makeMetadata: (name: string, sha256: string) => metadata ?? defaultMetadata(name, sha256),
    validation: validationOf(flags),
    timeoutMs,
    findNotBefore: () => findNotBefore(cli, flags),
  };
  await submitSet(cli, folder, { flags, submission });
}

/** The folder of which a set is made. Throws UsageError if flags and files do not go together. */
function findFolder(given: readonly string[], flags: Flags): string | undefined {
  const folders = given.filter(isFolder);
  const [folder] = folders;
  const { set, bundle, force, notBefore, include, exclude, followSymlinks } = flags;
  const isOfSet = [set, bundle, force, notBefore].some((flag) => flag !== undefined);
  const isOfFolder = [include, exclude, followSymlinks].some((flag) => flag !== undefined);
  if (isOfSet && (folder === undefined || flags.each))
    throw new UsageError(
      '--set, --bundle, --force and --not-before are for the set of a folder, without --each',
    );
  if (isOfFolder && folder === undefined)
    throw new UsageError('--include, --exclude and --follow-symlinks need a folder');
  if (flags.each || folder === undefined) return undefined;
  if (given.length === 1) return folder;
  throw new UsageError(
    `${folder} is a directory: submit it alone, as one set, or with --each, which submits every file by itself`,
  );
}

type Submitting = {
  client: Client;
  metadata: JsonObject | undefined;
  concurrency: number;
  timeoutMs: number;
  flags: Flags;
};

async function submitFiles(
  cli: Cli,
  files: readonly string[],
  { client, metadata, concurrency, timeoutMs, flags }: Submitting,
): Promise<void> {
  const totalBytes = await totalSize(files);
  const shown = { output: cli.stderr, now: () => cli.now().getTime() };
  const label = files.length === 1 ? 'hashing' : `hashing ${files.length} files`;
  const hashing = openProgress(shown, label, totalBytes);
  const submitting = openProgress(shown, 'submitting', files.length, String);
  const failed = new AbortController();
  const interruption = onInterruption(cli, 'stopping after the call under way; repeat to exit at once');
  const stop = interruption.signal;
  const signal = AbortSignal.any([failed.signal, stop]);
  const hashed = mapConcurrent(files, concurrency, (file) =>
    hashFile(file, { onBytes: hashing.add, signal }),
  );
  const submitted = submitHashed(client, hashed, {
    makeItem: itemMaker(metadata, flags),
    failed: failed.signal,
    stop,
    onResults: submitting.add,
  });
  const wait = (result: FileResult) =>
    flags.wait ? waitFor(client, result, { timeoutMs, signal: stop }) : result;
  const report = openReport(cli, flags);
  const clear = () => [hashing, submitting].map((progress) => progress.clear());
  try {
    for await (const result of mapConcurrent(submitted, concurrency, async (each) => wait(each))) {
      clear();
      if (!report.add(result)) failed.abort();
    }
  } finally {
    clear();
    interruption.end();
  }
  report.end(stop.aborted ? files.length : undefined);
}

/** The result once its submission is witnessed; the submission as it was if the signal aborts before. */
async function waitFor(
  { attestations }: Client,
  result: FileResult,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<FileResult> {
  if ('error' in result) return result;
  const { file, submission } = result;
  try {
    const found = await attestations.waitUntilWitnessed(submission.id, options);
    return { file, submission: { ...found, warnings: submission.warnings } };
  } catch (error) {
    return options.signal.aborted ? result : { file, error };
  }
}

function validationOf({ lenient }: Flags): ValidationMode {
  return lenient ? ValidationMode.LENIENT : ValidationMode.STRICT;
}

function itemMaker(metadata: JsonObject | undefined, flags: Flags): MakeItem {
  const validation = validationOf(flags);
  return ({ file, sha256 }) => ({
    artifact: { sha256 },
    metadata: metadata ?? defaultMetadata(file, sha256),
    validation,
  });
}

function defaultMetadata(file: string, sha256: string): JsonObject {
  const qualifiers = { checksum: `sha256:${sha256}` };
  const purl = new PackageURL('generic', undefined, basename(file), undefined, qualifiers, undefined);
  return { schema: 'purl', purl: purl.toString() };
}

/** Total size in bytes. Throws UsageError before anything is submitted if a file is missing. */
async function totalSize(files: readonly string[]): Promise<number> {
  let total = 0;
  for (const file of files) total += await inputFileSize(file);
  return total;
}
