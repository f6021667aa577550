import type { Command } from 'commander';
import { MeSchema } from '../../../../gen/attestation/v1/service_pb.js';
import { compileWriter } from '../../../server/json/codec.js';
import type { Cli } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { openClient } from '../../flags/open-client.js';
import { addOutputFlags, OUTPUT_HELP, type OutputFlags, printItem } from '../../output/format.js';
import { principalRows, usageRows } from '../../output/me-text.js';
import { formatTable } from '../../output/table.js';

const HELP = `${OUTPUT_HELP}
${CLIENT_HELP}

Examples:
  $ attest me
  $ attest me --profile ci --json`;

/** `attest me`. */
export function addMe(program: Command, cli: Cli): void {
  addOutputFlags(addClientFlags(program.command('me')))
    .addHelpText('after', HELP)
    .action(async (flags: ClientFlags & OutputFlags) => {
      const me = await openClient(cli, flags).service.getMe();
      const { url = '', urlFrom = '', keyFrom = '' } = cli.service ?? {};
      printItem(cli, flags, {
        json: () => compileWriter(MeSchema)(me),
        text: () =>
          formatTable([
            ['service', `${url} (of ${urlFrom})`],
            ...principalRows(me),
            ['key of', keyFrom],
            ...usageRows(me),
          ]),
      });
    });
}
