import type { Command } from 'commander';
import type { Cli } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { openClient } from '../../flags/open-client.js';
import { assertSubmissionId } from '../../input/submission-id.js';
import { confirm } from '../../output/confirm.js';
import { printSubmission } from './correct.js';

type Flags = ClientFlags & { yes?: boolean; json?: boolean };

const HELP = `
Erases the metadata of a submission: the original, a correction, the validation errors, and the salt of the commitment
in the statement. Cannot be undone. The leaf, the bundle and the schema's name remain. Redaction is idempotent.
${CLIENT_HELP}

Examples:
  $ attest redact sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T
  $ attest redact sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --yes --json`;

/** `attest redact`. */
export function addRedact(program: Command, cli: Cli): void {
  addClientFlags(program.command('redact'))
    .argument('<id>', 'submission ID, sub_...')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--json', 'print the submission as JSON')
    .addHelpText('after', HELP)
    .action((id: string, flags: Flags) => redact(cli, id, flags));
}

async function redact(cli: Cli, id: string, flags: Flags): Promise<void> {
  assertSubmissionId(id);
  const { attestations } = openClient(cli, flags);
  if (!flags.yes) await confirm(cli, `Erase the metadata of ${id} for good?`, '--yes');
  printSubmission(cli, await attestations.delete(id), 'redacted', flags);
}
