import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Command, Option } from 'commander';
import { SubmissionStatus, SubmissionStatusSchema } from '../../../../gen/attestation/v1/attestations_pb.js';
import { enumNames, findEnumNumber } from '../../../protocol/enum-names.js';
import type { Cli } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { parseCount, parsePastTime } from '../../flags/flag-values.js';
import { openClient } from '../../flags/open-client.js';
import { artifactSha256 } from '../../input/artifact.js';
import { addOutputFlags, OUTPUT_HELP, type OutputFlags, printList } from '../../output/format.js';
import { SUBMISSION_COLUMNS } from '../../output/submission-text.js';
import { assertBuildId } from '../../submit/build.js';
import { MAX_LIMIT, MAX_PAGE, takeFirst } from './limit.js';

type Flags = ClientFlags &
  OutputFlags & {
    schema?: string;
    status?: string;
    since?: string;
    before?: string;
    artifact?: string;
    build?: string;
    limit?: string;
  };

const HELP = `
Lists all of the project's submissions in the environment of the key, newest first, page by page as they arrive. A time is
a duration before now (ms, s, m, h, d) or RFC 3339. A file is hashed here and not sent; \`attest lookup\` takes many.
${OUTPUT_HELP}
${CLIENT_HELP}

Examples:
  $ attest list --since 24h --status failed
  $ attest list --artifact model.bin --limit 1
  $ attest list --build ci-4711
  $ attest list --schema purl --before 2026-01-31T00:00:00Z --output ndjson | jq -r .id`;

/** `attest list`. */
export function addList(program: Command, cli: Cli): void {
  addOutputFlags(addClientFlags(program.command('list')))
    .option('--schema <name>', 'only with metadata of this schema')
    .addOption(
      new Option('--status <status>', 'only with this status').choices(enumNames(SubmissionStatusSchema)),
    )
    .option('--since <time>', 'only those submitted after this time')
    .option('--before <time>', 'only those submitted before this time')
    .option('--artifact <file>', 'only those of this file, or sha256:<hex>')
    .option('--build <id>', 'only those submitted with this build')
    .option('--limit <count>', `the newest ones only, 1 to ${MAX_LIMIT}`)
    .addHelpText('after', HELP)
    .action((flags: Flags) => list(cli, flags));
}

async function list(cli: Cli, flags: Flags): Promise<void> {
  const { schema = '', status, since, before, artifact, build = '' } = flags;
  if (flags.build !== undefined) assertBuildId('--build', build);
  const limit = flags.limit === undefined ? undefined : parseCount('--limit', flags.limit, MAX_LIMIT);
  const time = (flag: string, text: string) => timestampFromDate(parsePastTime(cli, flag, text));
  const filters = {
    schema,
    build,
    status:
      status === undefined ? SubmissionStatus.UNSPECIFIED : findEnumNumber(SubmissionStatusSchema, status),
    ...(since !== undefined && { submittedAfter: time('--since', since) }),
    ...(before !== undefined && { submittedBefore: time('--before', before) }),
    limit: Math.min(limit ?? MAX_PAGE, MAX_PAGE),
  };
  const { attestations } = openClient(cli, flags);
  const ofFile = artifact === undefined ? {} : { artifactSha256: await artifactSha256(cli, artifact) };
  const submissions = takeFirst(attestations.list({ ...filters, ...ofFile }), limit);
  await printList(cli, flags, submissions, SUBMISSION_COLUMNS);
}
