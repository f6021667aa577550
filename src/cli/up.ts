import { join } from 'node:path';
import type { Command } from 'commander';
import type { Ready } from '../app/contract.js';
import { readConfig } from '../config.js';
import { type Cli, print } from './cli.js';
import { addServerFlags, runServer, type ServerFlags, withFlags } from './run-server.js';

const HELP = `
Starts everything on this machine: a Postgres and a nats-server of its own (unless DATABASE_URL and NATS_URL name
others), the API and the worker. Keys, secrets and data are kept in the data directory and found again by the next
start. When all is ready it prints "ready" and the address.

Examples:
  $ attest up
  $ attest up --port 0 --ops-port 0 --data-dir /tmp/attest`;

/** `attest up`. */
export function addUp(program: Command, cli: Cli): void {
  addServerFlags(program.command('up'))
    .description('run the whole service on this machine')
    .option('--json', 'print the addresses as one line of JSON')
    .addHelpText('after', HELP)
    .action(async (flags: ServerFlags & { json?: boolean }) => {
      const config = readConfig(withFlags(cli.env, flags), { process: 'up' });
      const { runUp } = await import('../app.js');
      await runServer(
        cli,
        (options) => runUp(config, options),
        (ready) => print(cli, flags.json ? readyJson(ready, config.dataDir) : readyText(cli, ready, flags)),
      );
    });
}

function readyJson({ baseUrl, verifyUrl, opsUrl }: Ready, dataDir: string): string {
  const credentials = join(dataDir, 'credentials.json');
  return JSON.stringify({ base_url: baseUrl, verify_url: verifyUrl, ops_url: opsUrl, credentials });
}

function readyText({ self }: Cli, { baseUrl, verifyUrl, opsUrl }: Ready, { dataDir }: ServerFlags): string {
  const flag = dataDir === undefined ? '' : ` --data-dir ${dataDir}`;
  return [
    `ready ${baseUrl}`,
    `  trust roots and log  ${verifyUrl}`,
    `  health and metrics   ${opsUrl}`,
    `  keys                 ${join(dataDir ?? '.data', 'credentials.json')}`,
    'Submit a file, wait for its witnesses, verify:',
    `  id=$(${self} submit package.json --quiet${flag})`,
    `  ${self} bundle "$id" --wait -o package.json.bundle${flag}`,
    `  ${self} verify package.json --bundle package.json.bundle${flag}`,
  ].join('\n');
}
