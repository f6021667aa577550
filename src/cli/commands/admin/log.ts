import { createPublicKey } from 'node:crypto';
import { type Command, Option } from 'commander';
import { readConfig } from '../../../config/config.js';
import { parseSocketKey } from '../../../config/secret-setting-types.js';
import { readSettingFile } from '../../../config/setting-files.js';
import type { EnvironmentName } from '../../../protocol/environment.js';
import { parseMlDsaKey } from '../../../server/keys/ml-dsa-key.js';
import { rawEd25519PublicKey } from '../../../server/keys/secrets.js';
import type { LogManager, LogStatus } from '../../../server/process/log-manager.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { addHelp } from '../../output/help.js';
import { formatTable } from '../../output/table.js';
import { ARCHIVE_EXAMPLES, addLogArchive } from './log-archive.js';

type Flags = { dataDir?: string; json?: boolean };
type EpochFlags = Flags & { environment: EnvironmentName; lane: string; key?: string; mlDsaKey?: string };

const HELP = `
Uses the database of DATABASE_URL, or that of \`attest up\` in the data directory, and the checkpoint register
(CHECKPOINT_REGISTER), which records published checkpoints outside the database.

\`new-epoch --key\` rotates the key of a log, \`--ml-dsa-key\` its second key: add the new file to LOG_KEY_FILE or
LOG_ML_DSA_KEY_FILE beside the old one and restart every process first. Submissions go to a new log from then on; the old one is sealed, witnessed and closed.

A log is frozen if the database is behind the register: it was restored from a backup older than a published checkpoint.
Restore a newer backup if there is one. If there is none, \`new-epoch\` starts a new log under a new origin; the old one
stays readable and its bundles still verify.`;

const EXAMPLES = [
  'attest log status',
  'attest log new-epoch --environment live',
  'attest log new-epoch --environment live --key log-live-2.pem',
  'attest log new-epoch --environment live --key log-live-2.pem --ml-dsa-key ml-dsa-live-2.pem',
  'attest log new-epoch --environment live --lane 2',
  'attest log fill-register',
  ...ARCHIVE_EXAMPLES,
];

/** `attest log`. */
export function addLog(program: Command, cli: Cli): void {
  const log = addHelp(program.command('log'), HELP, EXAMPLES);
  addFlags(log.command('status'))
    .description('show size and state of each log')
    .action((flags: Flags) => withLogs(cli, flags, async (logs) => show(cli, flags, await logs.status())));
  addFlags(log.command('new-epoch'))
    .description('start a new log in place of a frozen one, or with another key')
    .addOption(
      new Option('--environment <environment>', 'environment of the log')
        .choices(['live', 'test'])
        .makeOptionMandatory(),
    )
    .option('--lane <n>', 'which of several logs of the environment (LOGS)', '1')
    .option(
      '--key <file>',
      'Ed25519 key of the new log in PEM, private or public, or socket:<path>#<key> (default: the key of the old log)',
    )
    .option(
      '--ml-dsa-key <file>',
      'ML-DSA-44 key of the new log, private, in PEM (default: that of the old log)',
    )
    .action(async ({ environment, lane, key, mlDsaKey, ...flags }: EpochFlags) => {
      if (!/^[1-9]\d?$/.test(lane)) throw new UsageError(`--lane ${lane}: it is not a number from 1 to 64`);
      const publicKey = key === undefined ? undefined : await readPublicKey(key);
      const mlDsaPublicKey = mlDsaKey === undefined ? undefined : readMlDsaPublicKey(mlDsaKey);
      await withLogs(cli, flags, async (logs) =>
        show(cli, flags, [
          await logs.newEpoch(environment, { lane: Number(lane), publicKey, mlDsaPublicKey }),
        ]),
      );
    });
  addFlags(log.command('fill-register'))
    .description(
      'bring the register up to the database: one that was lost, or that is to be used from now on',
    )
    .action((flags: Flags) =>
      withLogs(cli, flags, async (logs) => {
        const filled = await logs.fillRegister();
        if (flags.json) print(cli, JSON.stringify({ filled }));
        else print(cli, filled.length === 0 ? 'the register is complete' : `restored ${filled.join(', ')}`);
      }),
    );
  addLogArchive(log, cli);
}

function addFlags(command: Command): Command {
  return addHelp(command, HELP, EXAMPLES)
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .option('--json', 'print JSON');
}

async function readPublicKey(path: string): Promise<Uint8Array> {
  try {
    const socketKey = parseSocketKey(path);
    if (socketKey !== undefined) {
      return await (await import('../../../server/log/log-keys.js')).readRemoteLogKey(socketKey);
    }
    const key = createPublicKey(readSettingFile(path));
    if (key.asymmetricKeyType !== 'ed25519') throw new Error('it is not an Ed25519 key');
    return rawEd25519PublicKey(key);
  } catch (error) {
    throw new UsageError(`--key ${path}: ${(error as Error).message}`);
  }
}

function readMlDsaPublicKey(path: string): Uint8Array {
  try {
    return parseMlDsaKey(readSettingFile(path)).publicKey;
  } catch (error) {
    throw new UsageError(`--ml-dsa-key ${path}: ${(error as Error).message}`);
  }
}

async function withLogs(cli: Cli, flags: Flags, use: (logs: LogManager) => Promise<void>): Promise<void> {
  const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'log' }));
  await (await import('../../../server/process/run.js')).withLogs(config, use);
}

function show(cli: Cli, { json }: Flags, logs: readonly LogStatus[]): void {
  if (json) {
    print(cli, JSON.stringify(logs.map(statusJson)));
    return;
  }
  const head = ['ORIGIN', 'LEAVES', 'PUBLISHED', 'REGISTER', 'STATE'];
  const cells = logs.map((log) => [
    log.origin,
    String(log.leaves),
    String(log.publishedSize),
    log.registerSize === undefined ? '-' : String(log.registerSize),
    log.reason === undefined ? log.state : `${log.state}: ${log.reason}`,
  ]);
  print(cli, formatTable([head, ...cells]));
}

function statusJson(log: LogStatus) {
  return {
    origin: log.origin,
    environment: log.environment,
    lane: log.lane,
    epoch: log.epoch,
    leaves: log.leaves,
    published_size: log.publishedSize,
    register_size: log.registerSize,
    state: log.state,
    reason: log.reason,
  };
}
