import type { Command } from 'commander';
import { type Submission, SubmissionSchema } from '../../../gen/attestation/v1/attestations_pb.js';
import { compileWriter } from '../../server/json/writer.js';
import { type Cli, print } from '../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags, openClient } from '../flags/client-flags.js';
import { type MetadataFlags, readMetadata } from '../flags/metadata-flags.js';

type Flags = ClientFlags & MetadataFlags & { json?: boolean };

const HELP = `
Replaces metadata that failed its schema, all of it, by metadata that passes; it may name another schema. The leaf in
the log stays as it is. What was attested is kept beside the correction, until it is redacted.
${CLIENT_HELP}

Examples:
  $ attest correct sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --schema purl --metadata '{"purl": "pkg:npm/acme@1.0.0"}'
  $ attest correct sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --metadata @result.json --json`;

/** `attest correct`. */
export function addCorrect(program: Command, cli: Cli): void {
  addClientFlags(program.command('correct'))
    .description('correct metadata that failed its schema')
    .argument('<id>', 'the id of the submission, sub_...')
    .option('--schema <name>', 'the schema of the metadata')
    .requiredOption('--metadata <json>', 'metadata as JSON, or @ and a file with it')
    .option('--json', 'print the submission as JSON')
    .addHelpText('after', HELP)
    .action((id: string, flags: Flags) => correct(cli, id, flags));
}

async function correct(cli: Cli, id: string, flags: Flags): Promise<void> {
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
