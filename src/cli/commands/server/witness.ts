import { writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import { readConfig } from '../../../config/config.js';
import { type CosignerConfig, namedCosigner } from '../../../config/cosigner-settings.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { encodeVerifierKey } from '../../../proof/log/note.js';
import type { CosignerKey } from '../../../server/keys/cosigner-key.js';
import type { Ready } from '../../../server/process/addresses.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { addHelp } from '../../output/help.js';
import { addApiFlags, runServer, type ServerFlags } from '../../run-server.js';

const HELP = `
Runs a witness of other transparency logs (C2SP tlog-witness): it checks that each of them only grows, and cosigns their
checkpoints. Needs neither Postgres nor NATS.

Requires WITNESS_NAME, WITNESS_KEY_FILE and WITNESS_LOGS (or --log). What it has cosigned is kept in WITNESS_HISTORY
(default: witness-history in the data directory). Never delete or restore that directory: the witness could then be
led to sign a second history of a log.`;

const EXAMPLES = [
  'attest witness new-key --name witness.example.com/w1 --algorithm ml-dsa-44 witness.pem',
  'attest witness --port 8080 --log "$(cat log.vkey)"',
];

type Flags = ServerFlags & { log?: string[] };
type KeyFlags = { name: string; algorithm: CosignerKey['algorithm']; json?: boolean };

/** `attest witness`. */
export function addWitness(program: Command, cli: Cli): void {
  const command = addHelp(program.command('witness'), HELP, EXAMPLES);
  addApiFlags(command)
    .option('--log <vkey...>', 'verifier keys of the logs to witness (WITNESS_LOGS)')
    .action((flags: Flags) => runWitness(cli, flags));
  addHelp(command.command('new-key'), HELP, EXAMPLES)
    .description('make a key, write it to a new file and print its verifier key')
    .requiredOption('--name <name>', 'name of the witness: a URL without its scheme (WITNESS_NAME)')
    .addOption(
      new Option('--algorithm <algorithm>', 'algorithm of the key')
        .choices(['ed25519', 'ml-dsa-44'])
        .default('ml-dsa-44'),
    )
    .argument('<file>', 'file to write')
    .action((file: string, flags: KeyFlags) => makeKey(cli, file, flags));
}

async function runWitness(cli: Cli, flags: Flags): Promise<void> {
  const logs = flags.log === undefined ? {} : { WITNESS_LOGS: flags.log.join('\n') };
  const config = readWithFlags({ ...cli.env, ...logs }, flags, (env) =>
    readConfig(env, { process: 'witness' }),
  );
  const { runCosigner } = await import('../../../server/process/run-cosigner.js');
  await runServer(
    cli,
    (options) => runCosigner(config, options),
    (ready) => print(cli, flags.json ? readyJson(ready, config) : readyText(ready, config)),
  );
}

async function makeKey(cli: Cli, file: string, { name, algorithm }: KeyFlags): Promise<void> {
  const { newCosignerKeyPem, parseCosignerKey } = await import('../../../server/keys/cosigner-key.js');
  const pem = newCosignerKeyPem(algorithm);
  const verifierKey = vkeyOf(name, parseCosignerKey(pem));
  await writeFile(file, pem, { flag: 'wx', mode: 0o600 });
  print(cli, verifierKey);
}

function vkeyOf(name: string, key: CosignerKey): string {
  try {
    return encodeVerifierKey(namedCosigner(name, key).key);
  } catch (error) {
    if (error instanceof FormatError) throw new UsageError(`--name: ${error.message}`);
    throw error;
  }
}

function readyJson({ baseUrl, opsUrl }: Ready, config: CosignerConfig): string {
  return JSON.stringify({ url: baseUrl, ops_url: opsUrl, verifier_keys: verifierKeys(config) });
}

function readyText({ baseUrl, opsUrl }: Ready, config: CosignerConfig): string {
  return [
    `ready ${baseUrl}`,
    `  health and metrics   ${opsUrl}`,
    ...verifierKeys(config).map((key) => `  verifier key         ${key}`),
  ].join('\n');
}

function verifierKeys({ cosigners }: CosignerConfig): string[] {
  return cosigners.map(({ key }) => encodeVerifierKey(key));
}
