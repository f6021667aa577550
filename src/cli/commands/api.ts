import type { Command } from 'commander';
import { readConfig } from '../../config/config.js';
import { type Cli, print } from '../cli.js';
import { readWithFlags } from '../flags/setting-flags.js';
import { addApiFlags, readyJson, runServer, type ServerFlags } from '../run-server.js';

const HELP = `
Serves REST, Connect, gRPC and gRPC-Web on one port. Run as many as the load needs, over one Postgres and one NATS;
it starts only when DATABASE_URL, NATS_URL, SECRET_KEY, DSSE_KEY_FILE and LOG_KEY_FILE are set, and LOG_DOMAIN while the
database has no log. ADMIN_TOKEN opens the admin API, with which projects and keys are made; with ADMIN_PORT it is served
on that port of ADMIN_HOST (127.0.0.1) alone, with TLS when the API has it.

Example:
  $ attest api --port 8080`;

/** `attest api`. */
export function addApi(program: Command, cli: Cli): void {
  addApiFlags(program.command('api'))
    .description('serve the API')
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags) => {
      const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'api' }));
      const { runApi } = await import('../../server/process/run.js');
      await runServer(
        cli,
        (options) => runApi(config, options),
        (ready) => print(cli, flags.json ? readyJson(ready) : `ready ${ready.baseUrl}`),
      );
    });
}
