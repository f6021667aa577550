import type { Command } from 'commander';
import { readConfig } from '../../../config/config.js';
import type { SignerConfig } from '../../../config/signer/signer-settings.js';
import type { KeyCheck } from '../../../server/signer/check-keys.js';
import { type Cli, print } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { addHelp } from '../../output/help.js';
import { addServerFlags, runServer, type ServerFlags } from '../../run-server.js';

const HELP = `
Signs for api and worker processes with keys in an HSM (PKCS#11), AWS KMS, Google Cloud KMS, Azure Key Vault or Vault, which
ask it at a Unix domain socket. Each key signs what is of its purpose and nothing else; that of a log never a second history.

Requires SIGNER_SOCKET and SIGNER_CONFIG (or --socket and --config). Which checkpoints it has signed is kept in
SIGNER_HISTORY (default: signer-history in the data directory). Never delete or restore that directory.`;

const EXAMPLES = [
  'attest signer --config signer.json --socket /run/attest/signer.sock',
  'attest signer --config signer.json --socket /run/attest/signer.sock --check',
];

type Flags = ServerFlags & { config?: string; socket?: string; socketMode?: string; check?: boolean };

/** `attest signer`. */
export function addSigner(program: Command, cli: Cli): void {
  const command = addHelp(program.command('signer'), HELP, EXAMPLES);
  addServerFlags(command)
    .option('--config <file>', 'file with the backends and keys (SIGNER_CONFIG)')
    .option('--socket <path>', 'Unix domain socket to listen at (SIGNER_SOCKET)')
    .option('--socket-mode <mode>', 'permissions of the socket (SIGNER_SOCKET_MODE, default: 0600)')
    .option('--check', 'sign a value by each key, print a line each and exit: 1 if one fails')
    .action((flags: Flags) => runSignerCommand(cli, flags));
}

async function runSignerCommand(cli: Cli, flags: Flags): Promise<void> {
  const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'signer' }));
  if (flags.check) return check(cli, config, flags);
  const { runSigner } = await import('../../../server/process/run-signer.js');
  await runServer(
    cli,
    (options) => runSigner(config, options),
    ({ opsUrl }) => print(cli, flags.json ? readyJson(config, opsUrl) : readyText(config, opsUrl)),
  );
}

async function check(cli: Cli, config: SignerConfig, { json }: Flags): Promise<void> {
  const { checkKeys } = await import('../../../server/signer/check-keys.js');
  const checks = await checkKeys(config);
  for (const one of checks) print(cli, json ? JSON.stringify(one) : lineOf(one));
  if (checks.some(({ error }) => error !== undefined)) cli.exitCode = 1;
}

function lineOf({ key, backend, purpose, ms, error }: KeyCheck): string {
  return `${error === undefined ? 'ok    ' : 'failed'}  ${key}  ${backend}  ${purpose}  ${error ?? `${ms} ms`}`;
}

function readyJson({ socketPath }: SignerConfig, opsUrl: string): string {
  return JSON.stringify({ socket: socketPath, ops_url: opsUrl });
}

function readyText({ socketPath, keys }: SignerConfig, opsUrl: string): string {
  return [
    `ready ${socketPath}`,
    `  health and metrics   ${opsUrl}`,
    ...keys.map(({ name, purpose }) => `  ${purpose.padEnd(19)}  socket:${socketPath}#${name}`),
  ].join('\n');
}
