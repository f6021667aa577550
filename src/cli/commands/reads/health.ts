import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import type { Command } from 'commander';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../../../gen/grpc/health/v1/health_pb.js';
import { toAttestationError } from '../../../client/error.js';
import { printable } from '../../../protocol/printable.js';
import type { Cli } from '../../cli.js';
import { addAddressFlags, type ClientFlags } from '../../flags/client-flags.js';
import { findAddress } from '../../flags/open-client.js';
import { openFetch } from '../../input/network.js';
import { addOutputFlags, OUTPUT_HELP, type OutputFlags, printItem } from '../../output/format.js';

const TIMEOUT_MS = 10_000;

const HELP = `
Asks grpc.health.v1.Health, once, without a key. The address is that of --url, else --profile, else ATTEST_URL, else a profile,
else the credentials of \`attest up\`. Whether witnesses are late is in \`attest batches\`.

Exit codes: 0 serving, 1 not serving or no answer, 2 invalid arguments.
${OUTPUT_HELP}

Examples:
  $ attest health --url https://attest.example.com
  $ until attest health; do sleep 1; done`;

type Flags = Pick<ClientFlags, 'url' | 'profile' | 'dataDir'> & OutputFlags;

/** `attest health`. */
export function addHealth(program: Command, cli: Cli): void {
  addOutputFlags(addAddressFlags(program.command('health')))
    .addHelpText('after', HELP)
    .action((flags: Flags) => checkHealth(cli, flags));
}

async function checkHealth(cli: Cli, flags: Flags): Promise<void> {
  const { baseUrl, urlFrom } = findAddress(cli.env, flags);
  const transport = createConnectTransport({ baseUrl, useBinaryFormat: true, fetch: openFetch(cli.env) });
  const { status, reason } = await createClient(Health, transport)
    .check({}, { timeoutMs: TIMEOUT_MS })
    .then(
      (answer) => ({
        status: answer.status === ServingStatus.SERVING ? 'serving' : 'not_serving',
        reason: undefined,
      }),
      (error: unknown) => ({
        status: 'unreachable',
        reason: toAttestationError(error, cli.now().getTime()).message,
      }),
    );
  if (status !== 'serving') cli.exitCode = 1;
  printItem(cli, flags, {
    json: () => JSON.stringify({ status, url: baseUrl, reason }),
    text: () =>
      [status.replace('_', ' '), `${baseUrl} (${urlFrom})`, ...(reason === undefined ? [] : [reason])]
        .map(printable)
        .join('  '),
  });
}
