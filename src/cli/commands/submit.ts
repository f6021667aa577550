import { basename } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { PackageURL } from 'packageurl-js';
import {
  type Submission,
  SubmissionSchema,
  SubmissionStatusSchema,
  ValidationMode,
} from '../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../client/client.js';
import { AttestationError } from '../../client/error.js';
import { hashArtifact } from '../../client/hash.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../../protocol/printable.js';
import { compileWriter } from '../../server/json/codec.js';
import { mapConcurrent } from '../audit/map-concurrent.js';
import { type Cli, print, printError } from '../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags, openClient } from '../flags/client-flags.js';
import { parseCount, parseDuration } from '../flags/flag-values.js';
import { type MetadataFlags, readMetadata } from '../flags/metadata-flags.js';
import { inputFileSize } from '../input/input-file.js';
import { openProgress, type Progress } from '../output/progress.js';
import { errorJson, errorText } from '../output/report-error.js';

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
Hashes files locally and submits the hashes; file contents are never sent. Prints ID, status and file of each submission,
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
  const work = async (file: string): Promise<FileResult> => {
    try {
      const submission = await submitFile(client, file, metadata, flags, { progress, signal });
      if (!flags.wait) return { file, submission };
      const waited = await client.attestations.waitUntilWitnessed(submission.id, { timeoutMs, signal });
      return { file, submission: { ...waited, warnings: submission.warnings } };
    } catch (error) {
      return { file, error };
    }
  };
  for await (const outcome of mapConcurrent(files, concurrency, work)) {
    progress.clear();
    printResult(cli, outcome, flags);
    if ('error' in outcome && !affectsOneFile(outcome.error)) break;
  }
  stopping.abort();
  progress.clear();
}

async function submitFile(
  { attestations }: Client,
  file: string,
  metadata: JsonObject | undefined,
  { lenient }: Flags,
  { progress, signal }: { progress: Progress; signal: AbortSignal },
): Promise<Submission> {
  const validation = lenient ? ValidationMode.LENIENT : ValidationMode.STRICT;
  const sha256 = await hashArtifact(file, { onBytes: progress.add, signal });
  const request = { artifact: { sha256 }, metadata: metadata ?? defaultMetadata(file, sha256), validation };
  return attestations.create(request, { signal });
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
  return error instanceof AttestationError ? /^(submission|wait)\./.test(error.code) : true;
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
