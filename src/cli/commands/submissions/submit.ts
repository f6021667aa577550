import { basename } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { PackageURL } from 'packageurl-js';
import {
  type Submission,
  SubmissionSchema,
  SubmissionStatusSchema,
  ValidationMode,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client, SubmitManyItem } from '../../../client/client.js';
import { AttestationError } from '../../../client/error.js';
import { hashArtifact } from '../../../client/hash.js';
import { enumName } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { compileWriter } from '../../../server/json/codec.js';
import { mapConcurrent } from '../../audit/source/map-concurrent.js';
import { type Cli, print, printError } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags, openClient } from '../../flags/client-flags.js';
import { parseCount, parseDuration } from '../../flags/flag-values.js';
import { type MetadataFlags, readMetadata } from '../../flags/metadata-flags.js';
import { inputFileSize } from '../../input/input-file.js';
import { openProgress, type Progress } from '../../output/progress.js';
import { errorJson, errorText } from '../../output/report-error.js';

type Flags = ClientFlags &
  MetadataFlags & {
    lenient?: boolean;
    wait?: boolean;
    timeout: string;
    concurrency: string;
    quiet?: boolean;
    json?: boolean;
  };

type FileResult = { file: string } & ({ submission: Submission } | { error: unknown });

const HELP = `
Hashes files locally and submits the hashes, up to 1,000 in a call; file contents are never sent. Prints ID, status and file of each submission,
in the order of the files. /dev/stdin is standard input. The default metadata is a package URL with the file's name
(pkg:generic/<name>?checksum=sha256:<hash>, schema purl).
${CLIENT_HELP}

Examples:
  $ attest submit dist/*.tgz --wait
  $ attest submit report.json --schema intoto.test_result.v0.1 --metadata @result.json
  $ attest submit model.bin --metadata '{"schema": "purl", "purl": "pkg:huggingface/acme/model@1"}' --json`;

/** `attest submit`. */
export function addSubmit(program: Command, cli: Cli): void {
  addClientFlags(program.command('submit'))
    .description('hash files and submit the hashes')
    .argument('<file...>', 'files to attest')
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

async function submit(cli: Cli, files: readonly string[], flags: Flags): Promise<void> {
  const concurrency = parseCount('--concurrency', flags.concurrency, 64);
  const timeoutMs = parseDuration('--timeout', flags.timeout, '1s', '30d');
  const metadata = await readMetadata(flags);
  const client = openClient(cli, flags);
  const totalBytes = await totalSize(files);
  const label = files.length === 1 ? 'hashing' : `hashing ${files.length} files`;
  const progress = openProgress({ output: cli.stderr, now: () => cli.now().getTime() }, label, totalBytes);
  const stopping = new AbortController();
  const { signal } = stopping;
  const hashed = mapConcurrent(files, concurrency, (file) => hashFile(file, { progress, signal }));
  const submitted = submitHashed(client, hashed, itemMaker(metadata, flags), signal);
  const wait = async (result: FileResult): Promise<FileResult> => {
    if (!flags.wait || 'error' in result) return result;
    const { file, submission } = result;
    const waited = client.attestations.waitUntilWitnessed(submission.id, { timeoutMs });
    return waited.then(
      (found) => ({ file, submission: { ...found, warnings: submission.warnings } }),
      (error: unknown) => ({ file, error }),
    );
  };
  let reason: unknown;
  let alike = 0;
  for await (const result of mapConcurrent(submitted, concurrency, wait)) {
    progress.clear();
    const error = 'error' in result ? result.error : undefined;
    if (reason !== undefined && isSameFailure(error, reason) && !flags.json) {
      alike++;
      continue;
    }
    printResult(cli, result, flags);
    if (error === undefined || affectsOneFile(error)) continue;
    reason ??= error;
    stopping.abort();
  }
  progress.clear();
  if (alike > 0) printError(cli, `error: ${alike} more files failed for the same reason`);
}

/** What a call submits of a file. */
type MakeItem = (file: { file: string; sha256: string }) => SubmitManyItem;

function itemMaker(metadata: JsonObject | undefined, { lenient }: Flags): MakeItem {
  const validation = lenient ? ValidationMode.LENIENT : ValidationMode.STRICT;
  return ({ file, sha256 }) => ({
    artifact: { sha256 },
    metadata: metadata ?? defaultMetadata(file, sha256),
    validation,
  });
}

/** Submits files, many in a call, and yields the results in the order of the files. Takes no more once `stopped` aborts. */
async function* submitHashed(
  { attestations }: Client,
  hashed: AsyncIterable<HashedFile>,
  makeItem: MakeItem,
  stopped: AbortSignal,
): AsyncGenerator<FileResult> {
  const waiting: HashedFile[] = [];
  const items = async function* () {
    for await (const file of hashed) {
      if (stopped.aborted) return;
      waiting.push(file);
      if ('sha256' in file) yield makeItem(file);
    }
  };
  for await (const { submission, error } of attestations.submitMany(items())) {
    yield* takeUnreadable(waiting);
    const { file = '' } = waiting.shift() ?? {};
    yield submission === undefined ? { file, error } : { file, submission };
  }
  yield* takeUnreadable(waiting);
}

/** The files before the next one that was submitted: they could not be read. */
function* takeUnreadable(waiting: HashedFile[]): Generator<FileResult> {
  for (let [first] = waiting; first !== undefined && 'error' in first; [first] = waiting) {
    waiting.shift();
    yield first;
  }
}

type HashedFile = { file: string } & ({ sha256: string } | { error: unknown });

async function hashFile(
  file: string,
  { progress, signal }: { progress: Progress; signal: AbortSignal },
): Promise<HashedFile> {
  try {
    return { file, sha256: await hashArtifact(file, { onBytes: progress.add, signal }) };
  } catch (error) {
    return { file, error };
  }
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

/** Whether the error concerns this file only, so that the others can go on. */
function affectsOneFile(error: unknown): boolean {
  return error instanceof AttestationError ? /^(submission|wait|idempotency)\./.test(error.code) : true;
}

/** Whether an error that does not concern one file only is that of another file. */
function isSameFailure(error: unknown, reason: unknown): boolean {
  if (!(error instanceof AttestationError) || !(reason instanceof AttestationError)) return error === reason;
  return error.code === reason.code && !affectsOneFile(error);
}

const writeSubmission = compileWriter(SubmissionSchema);

function printResult(cli: Cli, outcome: FileResult, { json, quiet }: Flags): void {
  const file = printable(outcome.file);
  if ('error' in outcome) {
    cli.exitCode = 1;
    if (json) print(cli, JSON.stringify({ file: outcome.file, error: errorJson(outcome.error) }));
    printError(cli, `error: ${file}: ${errorText(outcome.error)}`);
    return;
  }
  const { submission } = outcome;
  for (const { message } of submission.warnings) printError(cli, `warning: ${file}: ${printable(message)}`);
  if (json)
    print(cli, `{"file":${JSON.stringify(outcome.file)},"submission":${writeSubmission(submission)}}`);
  else if (quiet) print(cli, submission.id);
  else print(cli, `${submission.id}  ${enumName(SubmissionStatusSchema, submission.status)}  ${file}`);
}
