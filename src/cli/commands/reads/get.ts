import type { Command } from 'commander';
import type { Cli } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { openClient } from '../../flags/open-client.js';
import { assertSubmissionId } from '../../input/submission-id.js';
import { addOutputFlags, OUTPUT_HELP, type OutputFlags, printItem } from '../../output/format.js';
import { submissionJson, submissionText } from '../../output/submission-text.js';

const HELP = `
As JSON, with the proof bundle once that is ready.
${OUTPUT_HELP}
${CLIENT_HELP}

Examples:
  $ attest get sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T
  $ attest get sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --json | jq .metadata`;

/** `attest get`. */
export function addGet(program: Command, cli: Cli): void {
  addOutputFlags(addClientFlags(program.command('get')))
    .argument('<id>', 'submission ID, sub_...')
    .addHelpText('after', HELP)
    .action(async (id: string, flags: ClientFlags & OutputFlags) => {
      assertSubmissionId(id);
      const submission = await openClient(cli, flags).attestations.get(id);
      printItem(cli, flags, {
        json: () => submissionJson(submission),
        text: () => submissionText(submission),
      });
    });
}
