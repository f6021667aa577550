import type { Command } from 'commander';
import { type Cli, printable } from '../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags, openClient } from '../flags/client-flags.js';
import { confirm } from '../output/confirm.js';
import { printSubmission } from './correct.js';

type Flags = ClientFlags & { yes?: boolean; json?: boolean };

const HELP = `
Erases the metadata of a submission for good: the original, a correction, what validation said of it, and the salt that
opens the statement's commitment. The leaf, the bundle and the name of the schema stay. Doing it again changes nothing.
${CLIENT_HELP}

Examples:
  $ attest redact sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T
  $ attest redact sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --yes --json`;

/** `attest redact`. */
export function addRedact(program: Command, cli: Cli): void {
  addClientFlags(program.command('redact'))
    .description('erase the metadata of a submission for good')
    .argument('<id>', 'the id of the submission, sub_...')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print the submission as JSON')
    .addHelpText('after', HELP)
    .action((id: string, flags: Flags) => redact(cli, id, flags));
}

async function redact(cli: Cli, id: string, flags: Flags): Promise<void> {
  const { attestations } = openClient(cli, flags);
  if (!flags.yes) await confirm(cli, `Erase the metadata of ${printable(id)} for good?`, '--yes');
  printSubmission(cli, await attestations.delete(id), 'redacted', flags);
}
