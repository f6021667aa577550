import type { Command } from 'commander';
import { readConfig } from '../../../config/config.js';
import { type Cli, print } from '../../cli.js';

const HELP = `
Applies pending migrations to DATABASE_URL. Processes of the previous version keep working. \`attest up\` migrates at
startup.

Example:
  $ DATABASE_URL=postgres://attest:...@db/attest attest migrate`;

/** `attest migrate`. */
export function addMigrate(program: Command, cli: Cli): void {
  program
    .command('migrate')
    .option('--json', 'print the applied migrations as JSON')
    .addHelpText('after', HELP)
    .action(async ({ json }: { json?: boolean }) => {
      const config = readConfig(cli.env, { process: 'migrate' });
      const applied = await (await import('../../../server/process/run.js')).runMigrate(config);
      if (json) print(cli, JSON.stringify({ applied }));
      else print(cli, applied.length === 0 ? 'already up to date' : `applied ${applied.join(', ')}`);
    });
}
