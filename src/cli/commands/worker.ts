import { type Command, Option } from 'commander';
import { readConfig } from '../../config/config.js';
import { type Cli, print } from '../cli.js';
import { readWithFlags } from '../flags/setting-flags.js';
import { addServerFlags, readyJson, runServer, type ServerFlags } from '../run-server.js';

const HELP = `
Seals batches, asks witnesses and delivers events to webhooks. Run as many as the load needs, over one
Postgres and one NATS; it starts only when DATABASE_URL, NATS_URL, SECRET_KEY, DSSE_KEY_FILE and LOG_KEY_FILE are set,
and LOG_DOMAIN while the database has no log.

Example:
  $ attest worker --ops-port 9091`;

/** `attest worker`. */
export function addWorker(program: Command, cli: Cli): void {
  addServerFlags(program.command('worker'))
    .addOption(new Option('--port <port>', 'taken, so that api and worker may be started alike').hideHelp())
    .description('seal batches, ask witnesses and deliver events')
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags) => {
      const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'worker' }));
      const { runWorker } = await import('../../server/process/run.js');
      await runServer(
        cli,
        (options) => runWorker(config, options),
        (ready) => print(cli, flags.json ? readyJson(ready) : `ready ${ready.opsUrl}`),
      );
    });
}
