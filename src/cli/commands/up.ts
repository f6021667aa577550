import { join } from 'node:path';
import type { Command } from 'commander';
import { readConfig } from '../../config/config.js';
import type { Ready } from '../../server/process/start-process.js';
import { type Cli, print } from '../cli.js';
import { readWithFlags } from '../flags/setting-flags.js';
import { addApiFlags, readyJson, runServer, type ServerFlags } from '../run-server.js';

const HELP = `
Starts an embedded Postgres and nats-server (unless DATABASE_URL and NATS_URL are set), the API and the worker. Keys,
secrets and data persist in the data directory. Prints "ready" and the address once the service accepts requests.

Examples:
  $ attest up
  $ attest up --port 0 --ops-port 0 --data-dir /tmp/attest`;

/** `attest up`. */
export function addUp(program: Command, cli: Cli): void {
  addApiFlags(program.command('up'))
    .description('run the whole service on this machine')
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags) => {
      const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'up' }));
      const { runUp } = await import('../../server/process/run.js');
      await runServer(
        cli,
        (options) => runUp(config, options),
        (ready) => {
          const credentials = join(config.dataDir, 'credentials.json');
          const made: Record<string, string> =
            ready.newLogDomain === undefined ? {} : { log_domain: ready.newLogDomain };
          const json = () => readyJson(ready, { credentials, ...made });
          print(cli, flags.json ? json() : readyText(cli, ready, flags.dataDir));
        },
      );
    });
}

function readyText(
  { self, env }: Cli,
  { baseUrl, verifyUrl, opsUrl, adminUrl, projectId, newLogDomain }: Ready,
  dataDir = env.DATA_DIR || undefined,
): string {
  const flag = dataDir === undefined ? '' : ` --data-dir ${shellWord(dataDir)}`;
  const project = projectId === undefined ? '' : ` --project ${projectId}`;
  return [
    `ready ${baseUrl}`,
    `  API reference        ${baseUrl}/docs`,
    `  trust roots and log  ${verifyUrl}`,
    `  health and metrics   ${opsUrl}`,
    ...(adminUrl === undefined ? [] : [`  admin API            ${adminUrl}`]),
    `  keys                 ${join(dataDir ?? '.data', 'credentials.json')}`,
    ...(newLogDomain === undefined
      ? []
      : [
          `  logs                 live.${newLogDomain}, test.${newLogDomain} (new names, kept in this data directory)`,
        ]),
    'Submit a file, wait for its witnesses, verify:',
    `  id=$(${self} submit package.json --quiet${flag})`,
    `  ${self} bundle "$id" --wait -o package.json.bundle${flag}`,
    `  ${self} verify package.json --bundle package.json.bundle${project}${flag}`,
  ].join('\n');
}

/** Quotes a text as one word for a POSIX shell. */
function shellWord(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
