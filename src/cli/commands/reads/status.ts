import type { Command } from 'commander';
import { type Submission, SubmissionStatus } from '../../../../gen/attestation/v1/attestations_pb.js';
import { AttestationError } from '../../../client/error.js';
import { printable } from '../../../protocol/printable.js';
import { mapConcurrent } from '../../audit/source/map-concurrent.js';
import type { Cli } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { openClient } from '../../flags/open-client.js';
import { assertSubmissionId } from '../../input/submission-id.js';
import {
  addOutputFlags,
  type Columns,
  OUTPUT_HELP,
  type OutputFlags,
  printList,
} from '../../output/format.js';
import { statusName } from '../../output/submission-text.js';
import { timeText } from '../../output/time-text.js';

const CONCURRENCY = 8;
const NOT_FOUND = 'not found';

const HELP = `
Exit codes: 0 none failed, 1 one failed or was not found, or an error, 2 invalid arguments.
${OUTPUT_HELP}
${CLIENT_HELP}

Examples:
  $ attest status sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T
  $ attest list --since 1h --output ndjson | jq -r .id | xargs attest status`;

/** What is known of an id; no submission if there is none. */
type Found = { id: string; submission: Submission | undefined };

const COLUMNS: Columns<Found> = {
  head: ['ID', 'STATUS', 'WITNESSED'],
  cells: ({ id, submission }) => [
    printable(id),
    submission === undefined ? NOT_FOUND : statusName(submission),
    timeText(submission?.witnessedAt),
  ],
  json: ({ id, submission }) =>
    JSON.stringify({
      id,
      status: submission === undefined ? null : statusName(submission),
      witnessed_at: submission?.witnessedAt === undefined ? null : timeText(submission.witnessedAt),
    }),
};

/** `attest status`. */
export function addStatus(program: Command, cli: Cli): void {
  addOutputFlags(addClientFlags(program.command('status')))
    .argument('<id...>', 'submission IDs, sub_...')
    .addHelpText('after', HELP)
    .action(async (ids: string[], flags: ClientFlags & OutputFlags) => {
      ids.forEach(assertSubmissionId);
      const { attestations } = openClient(cli, flags);
      const read = async (id: string) => ({ id, answer: await attestations.get(id).catch(asError) });
      await printList(cli, flags, check(cli, mapConcurrent(ids, CONCURRENCY, read)), COLUMNS);
    });
}

/** Yields what was found, and sets exit code 1 for a failed or missing one. Throws other errors of the service. */
async function* check(
  cli: Cli,
  read: AsyncIterable<{ id: string; answer: Submission | Error }>,
): AsyncGenerator<Found> {
  for await (const { id, answer } of read) {
    if (answer instanceof Error && !isNotFound(answer)) throw answer;
    const submission = answer instanceof Error ? undefined : answer;
    if (submission === undefined || submission.status === SubmissionStatus.FAILED) cli.exitCode = 1;
    yield { id, submission };
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

function isNotFound(error: Error): boolean {
  return error instanceof AttestationError && error.code === 'submission.not_found';
}
