import { type Command, Option } from 'commander';
import { readConfig } from '../../../config/config.js';
import { type Cli, print } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { addServerFlags, readyJson, runServer, type ServerFlags } from '../../run-server.js';

const HELP = `
Seals batches, requests witness signatures and delivers webhooks. Any number of processes can share one Postgres and one
NATS.

Requires DATABASE_URL, NATS_URL, SECRET_KEY, DSSE_KEY_FILE and LOG_KEY_FILE, and LOG_DOMAIN until the database has a log.

Example:
  $ attest worker --ops-port 9091`;

/** `attest worker`. */
export function addWorker(program: Command, cli: Cli): void {
  addServerFlags(program.command('worker'))
    .addOption(
      new Option('--port <port>', 'ignored, so that api and worker accept the same flags').hideHelp(),
    )
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags) => {
      const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'worker' }));
      const { runWorker } = await import('../../../server/process/run.js');
      await runServer(
        cli,
        (options) => runWorker(config, options),
        (ready) => print(cli, flags.json ? readyJson(ready) : `ready ${ready.opsUrl}`),
      );
    });
}
