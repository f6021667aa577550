import type { Command } from 'commander';
import { type Submission, SubmissionSchema } from '../../../../gen/attestation/v1/attestations_pb.js';
import { compileWriter } from '../../../server/json/codec.js';
import { type Cli, print } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { type MetadataFlags, readMetadata } from '../../flags/metadata-flags.js';
import { openClient } from '../../flags/open-client.js';
import { assertSubmissionId } from '../../input/submission-id.js';

type Flags = ClientFlags & MetadataFlags & { json?: boolean };

const HELP = `
Replaces all metadata of a submission whose metadata failed its schema. The new metadata must be valid; its schema may
differ. The leaf in the log does not change. The attested original is stored with the correction until redaction.
${CLIENT_HELP}

Examples:
  $ attest correct sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --schema purl --metadata '{"purl": "pkg:npm/acme@1.0.0"}'
  $ attest correct sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --metadata @result.json --json`;

/** `attest correct`. */
export function addCorrect(program: Command, cli: Cli): void {
  addClientFlags(program.command('correct'))
    .argument('<id>', 'submission ID, sub_...')
    .option('--schema <name>', 'schema of the metadata')
    .requiredOption('--metadata <json>', 'metadata as JSON, or @<file>')
    .option('--json', 'print the submission as JSON')
    .addHelpText('after', HELP)
    .action((id: string, flags: Flags) => correct(cli, id, flags));
}

async function correct(cli: Cli, id: string, flags: Flags): Promise<void> {
  assertSubmissionId(id);
  const metadata = await readMetadata(flags);
  const submission = await openClient(cli, flags).attestations.update({ id, ...(metadata && { metadata }) });
  printSubmission(cli, submission, 'corrected', flags);
}

const writeSubmission = compileWriter(SubmissionSchema);

/** Prints a changed submission: its id and `done`, or all of it as JSON. */
export function printSubmission(
  cli: Cli,
  submission: Submission,
  done: string,
  { json }: { json?: boolean },
): void {
  print(cli, json ? writeSubmission(submission) : `${submission.id}  ${done}`);
}
