import { writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { type Cli, printError, UsageError } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { openClient } from '../../flags/open-client.js';

const FORMATS = ['json', 'sigstore.json', 'tlog-proof', 'ots', 'cose'] as const;

type Flags = ClientFlags & {
  format: (typeof FORMATS)[number];
  output?: string;
  wait?: boolean;
};

const HELP = `
Formats: json is the bundle for \`attest verify\`; sigstore.json the Sigstore bundle in it, for cosign and other tools;
tlog-proof a C2SP tlog-proof; ots an OpenTimestamps proof of the submission's leaf_sha256, once a Bitcoin block has it;
cose a COSE receipt (RFC 9942), once the log has two submissions.
${CLIENT_HELP}

Examples:
  $ attest bundle sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T -o model.bin.bundle
  $ attest bundle sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --format sigstore.json > model.bin.sigstore.json`;

/** `attest bundle`. */
export function addBundle(program: Command, cli: Cli): void {
  addClientFlags(program.command('bundle'))
    .description('fetch the proof bundle of a submission')
    .argument('<id>', 'submission ID, sub_...')
    .addOption(new Option('--format <format>', 'bundle format').choices(FORMATS).default('json'))
    .option('-o, --output <file>', 'output file (default: standard output)')
    .option('--wait', 'wait until the submission is witnessed')
    .option('--json', 'print errors as JSON')
    .addHelpText('after', HELP)
    .action((id: string, flags: Flags) => fetchBundle(cli, id, flags));
}

async function fetchBundle(cli: Cli, id: string, { format, output, wait, ...flags }: Flags): Promise<void> {
  const { attestations } = openClient(cli, flags);
  if (wait) await attestations.waitUntilWitnessed(id);
  const { data } = await attestations.downloadBundle({ id, format: `bundle.${format}` });
  if (output === undefined) {
    cli.stdout.write(data);
    return;
  }
  await writeFile(output, data).catch((error: Error) => {
    throw new UsageError(`${output} cannot be written: ${error.message}`);
  });
  printError(cli, `wrote ${output}, ${data.length} bytes`);
}
