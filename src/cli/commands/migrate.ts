import type { Command } from 'commander';
import { readConfig } from '../../config/config.js';
import { type Cli, print } from '../cli.js';

const HELP = `
Brings the tables of DATABASE_URL up to this version. Processes of the version before keep working on them.
attest up does this by itself.

Example:
  $ DATABASE_URL=postgres://attest:...@db/attest attest migrate`;

/** `attest migrate`. */
export function addMigrate(program: Command, cli: Cli): void {
  program
    .command('migrate')
    .description('bring the database up to this version')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(async ({ json }: { json?: boolean }) => {
      const config = readConfig(cli.env, { process: 'migrate' });
      const applied = await (await import('../../server/process/run.js')).runMigrate(config);
      if (json) print(cli, JSON.stringify({ applied }));
      else print(cli, applied.length === 0 ? 'already up to date' : `applied ${applied.join(', ')}`);
    });
}
