import { type Command, Option } from 'commander';
import { BatchStatus, BatchStatusSchema } from '../../../../gen/attestation/v1/batches_pb.js';
import { enumNames, findEnumNumber } from '../../../protocol/enum-names.js';
import { type Cli, UsageError } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { parseCount } from '../../flags/flag-values.js';
import { openClient } from '../../flags/open-client.js';
import { BATCH_COLUMNS, batchJson, batchText } from '../../output/batch-text.js';
import {
  addOutputFlags,
  OUTPUT_HELP,
  type OutputFlags,
  painter,
  printItem,
  printList,
} from '../../output/format.js';
import { MAX_LIMIT, MAX_PAGE, takeFirst } from './limit.js';

type Flags = ClientFlags & OutputFlags & { status?: string; limit?: string };

const HELP = `
Batches that hold a submission of the project, newest first; with an ID that one, and its witnesses.
${OUTPUT_HELP}
${CLIENT_HELP}

Examples:
  $ attest batches --status partial
  $ attest batches btc_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T`;

/** `attest batches`. */
export function addBatches(program: Command, cli: Cli): void {
  addOutputFlags(addClientFlags(program.command('batches')))
    .argument('[id]', 'batch ID, btc_...')
    .addOption(new Option('--status <status>', 'only with this status').choices(enumNames(BatchStatusSchema)))
    .option('--limit <count>', `the newest ones only, 1 to ${MAX_LIMIT}`)
    .addHelpText('after', HELP)
    .action((id: string | undefined, flags: Flags) =>
      id === undefined ? listBatches(cli, flags) : showBatch(cli, id, flags),
    );
}

async function listBatches(cli: Cli, flags: Flags): Promise<void> {
  const limit = flags.limit === undefined ? undefined : parseCount('--limit', flags.limit, MAX_LIMIT);
  const query = {
    status:
      flags.status === undefined ? BatchStatus.UNSPECIFIED : findEnumNumber(BatchStatusSchema, flags.status),
    limit: Math.min(limit ?? MAX_PAGE, MAX_PAGE),
  };
  await printList(cli, flags, takeFirst(openClient(cli, flags).batches.list(query), limit), BATCH_COLUMNS);
}

async function showBatch(cli: Cli, id: string, flags: Flags): Promise<void> {
  if (flags.status !== undefined || flags.limit !== undefined)
    throw new UsageError('--status and --limit are for a list, without an ID');
  const batch = await openClient(cli, flags).batches.get(id);
  printItem(cli, flags, { json: () => batchJson(batch), text: () => batchText(batch, painter(cli)) });
}
