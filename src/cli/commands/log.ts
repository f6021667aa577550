import { type Command, Option } from 'commander';
import { readConfig } from '../../config/config.js';
import type { EnvironmentName } from '../../protocol/environment.js';
import type { LogManager, LogStatus } from '../../server/logs/log-manager.js';
import { type Cli, print } from '../cli.js';

import { readWithFlags } from '../flags/setting-flags.js';
import { formatTable } from '../output/table.js';

type Flags = { dataDir?: string; json?: boolean };

const HELP = `
Works on the database of DATABASE_URL, or on the one that \`attest up\` runs over the data directory, and on the
register (CHECKPOINT_REGISTER), which remembers outside the database what was published.

A log is frozen when the database contradicts the register: it was restored from a backup older than a published
checkpoint. Restore a newer backup if there is one. If there is none, \`new-epoch\` begins a new log under a new
origin; the old one stays readable and its bundles verify as before.

Examples:
  $ attest log status
  $ attest log new-epoch --environment live
  $ attest log fill-register`;

/** `attest log`. */
export function addLog(program: Command, cli: Cli): void {
  const log = program
    .command('log')
    .description('show the logs, and go on after one was frozen')
    .addHelpText('after', HELP);
  addFlags(log.command('status'))
    .description('show where each log stands')
    .action((flags: Flags) => withLogs(cli, flags, async (logs) => show(cli, flags, await logs.status())));
  addFlags(log.command('new-epoch'))
    .description('begin a new log in place of a frozen one')
    .addOption(
      new Option('--environment <environment>', 'which log').choices(['live', 'test']).makeOptionMandatory(),
    )
    .action((flags: Flags & { environment: EnvironmentName }) =>
      withLogs(cli, flags, async (logs) => show(cli, flags, [await logs.newEpoch(flags.environment)])),
    );
  addFlags(log.command('fill-register'))
    .description('write what the database has published into a register that was lost')
    .action((flags: Flags) =>
      withLogs(cli, flags, async (logs) => {
        const filled = await logs.fillRegister();
        if (flags.json) print(cli, JSON.stringify({ filled }));
        else print(cli, filled.length === 0 ? 'the register lacks no log' : `filled in ${filled.join(', ')}`);
      }),
    );
}

function addFlags(command: Command): Command {
  return command
    .option('--data-dir <dir>', 'the data directory of `attest up` (DATA_DIR, .data)')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP);
}

async function withLogs(cli: Cli, flags: Flags, use: (logs: LogManager) => Promise<void>): Promise<void> {
  const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'log' }));
  await (await import('../../server/process/run.js')).withLogs(config, use);
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
    epoch: log.epoch,
    leaves: log.leaves,
    published_size: log.publishedSize,
    register_size: log.registerSize,
    state: log.state,
    reason: log.reason,
  };
}
