import { timestampDate } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import {
  type Submission,
  SubmissionSchema,
  SubmissionStatus,
  SubmissionStatusSchema,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../../client/client.js';
import { hashArtifact } from '../../../client/hash.js';
import { enumName, enumNames, findEnumNumber } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { compileWriter } from '../../../server/json/codec.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { parseCount } from '../../flags/flag-values.js';
import { openClient } from '../../flags/open-client.js';
import { artifactSha256 } from '../../input/artifact.js';
import { standardInput } from '../../input/standard-input.js';
import { formatTable } from '../../output/table.js';

const STDIN = '-';
const MAX_LIMIT = 10_000;
const MAX_PAGE = 200;

type Flags = ClientFlags & { schema?: string; status?: string; limit: string; json?: boolean };

const HELP = `
Hashes files locally and lists the project's submissions of them, newest first: ID, time, status, schema and file. File
contents are never sent. A digest as sha256:<hex> takes the place of a file, - is standard input.

Exit codes: 0 every artifact has a submission (that the filters let through), 1 one has none, or an error,
            2 invalid arguments.
${CLIENT_HELP}

Examples:
  $ attest lookup left-pad-1.3.0.tgz
  $ attest lookup sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --status witnessed
  $ curl -sL https://example.com/model.bin | attest lookup - --json`;

/** `attest lookup`. */
export function addLookup(program: Command, cli: Cli): void {
  addClientFlags(program.command('lookup'))
    .argument('<file...>', 'files, sha256:<hex> or -')
    .option('--schema <name>', 'only with metadata of this schema')
    .addOption(
      new Option('--status <status>', 'only with this status').choices(enumNames(SubmissionStatusSchema)),
    )
    .option('--limit <count>', `newest submissions per file, 1 to ${MAX_LIMIT}`, '20')
    .option('--json', 'print one line of JSON per file')
    .addHelpText('after', HELP)
    .action((files: string[], flags: Flags) => lookUp(cli, files, flags));
}

async function lookUp(cli: Cli, files: readonly string[], flags: Flags): Promise<void> {
  const limit = parseCount('--limit', flags.limit, MAX_LIMIT);
  if (files.filter((file) => file === STDIN).length > 1) throw new UsageError('- can be given only once');
  const client = openClient(cli, flags);
  for (const file of files) {
    const sha256 = await (file === STDIN ? hashArtifact(standardInput(cli)) : artifactSha256(cli, file));
    show(cli, { file, sha256, ...(await find(client, sha256, flags, limit)) }, flags);
  }
}

type Found = { submissions: Submission[]; hasMore: boolean };

async function find(
  { attestations }: Client,
  sha256: string,
  { schema = '', status }: Flags,
  limit: number,
): Promise<Found> {
  const submissions: Submission[] = [];
  const query = {
    artifactSha256: sha256,
    schema,
    status:
      status === undefined ? SubmissionStatus.UNSPECIFIED : findEnumNumber(SubmissionStatusSchema, status),
    limit: Math.min(limit + 1, MAX_PAGE),
  };
  for await (const submission of attestations.list(query)) {
    if (submissions.length === limit) return { submissions, hasMore: true };
    submissions.push(submission);
  }
  return { submissions, hasMore: false };
}

const writeSubmission = compileWriter(SubmissionSchema);

function show(
  cli: Cli,
  { file, sha256, submissions, hasMore }: Found & { file: string; sha256: string },
  { json }: Flags,
): void {
  if (submissions.length === 0) cli.exitCode = 1;
  if (json) {
    const all = submissions.map((submission) => writeSubmission(submission)).join();
    const head = JSON.stringify({ file, artifact_sha256: sha256, has_more: hasMore });
    print(cli, `${head.slice(0, -1)},"submissions":[${all}]}`);
    return;
  }
  const name = printable(file);
  if (submissions.length === 0) printError(cli, `no submission of ${name} (sha256:${sha256})`);
  else print(cli, formatTable(submissions.map((submission) => [...cells(submission), name])));
  if (hasMore) printError(cli, `${name} has older submissions as well: --limit shows more`);
}

function cells({ id, submittedAt, status, metadata }: Submission): string[] {
  return [
    id,
    submittedAt === undefined ? '-' : timestampDate(submittedAt).toISOString(),
    enumName(SubmissionStatusSchema, status),
    printable(String(metadata?.schema ?? '-')),
  ];
}
