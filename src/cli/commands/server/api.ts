import type { Command } from 'commander';
import { readConfig } from '../../../config/config.js';
import { type Cli, print } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { addApiFlags, addProcessesFlag, readyJson, runServer, type ServerFlags } from '../../run-server.js';

const HELP = `
Serves REST, Connect, gRPC and gRPC-Web on one port. Any number of processes can share one Postgres and one NATS.

Requires DATABASE_URL, NATS_URL, SECRET_KEY, DSSE_KEY_FILE and LOG_KEY_FILE, and LOG_DOMAIN until the database has a log.
ADMIN_TOKEN enables the admin API, which creates projects and keys. ADMIN_PORT moves it to a listener of its own on
ADMIN_HOST (default: 127.0.0.1), with TLS if the API uses TLS.

With --processes the processes share one port: this one starts them, starts those again that die, and has the ops
listener. SIGHUP reads TLS files again; SIGUSR2 replaces the processes one by one, without dropping a connection.

Example:
  $ attest api --port 8080 --processes 4`;

/** `attest api`. */
export function addApi(program: Command, cli: Cli): void {
  addProcessesFlag(addApiFlags(program.command('api')), '1')
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags) => {
      const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'api' }));
      const { runApi } = await import('../../../server/process/run.js');
      await runServer(
        cli,
        (options) => runApi(config, options),
        (ready) => print(cli, flags.json ? readyJson(ready) : `ready ${ready.baseUrl}`),
      );
    });
}
