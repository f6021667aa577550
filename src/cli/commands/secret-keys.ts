import type { Command } from 'commander';
import { readConfig } from '../../config/config.js';
import type { SecretKeyManager } from '../../server/process/secret-key-manager.js';
import { type Cli, print } from '../cli.js';
import { readWithFlags } from '../flags/setting-flags.js';
import { formatTable } from '../output/table.js';

type Flags = { dataDir?: string; json?: boolean };

const HELP = `
Works on the database of DATABASE_URL, or on the one that \`attest up\` runs over the data directory. The database knows
the keys of SECRET_KEY by their ids and by fingerprints, and a process whose keys do not fit them does not start.

A new key stands before the old one: SECRET_KEY=k2:<new>,k1:<old>. The old one can be left out once no webhook has its
secret under it (\`attest webhooks rotate\`) and no API key from before is used any more.

\`forget\` is for a key that is lost: what was made under it is lost as well.

Examples:
  $ attest secret-keys list
  $ attest secret-keys forget k1`;

/** `attest secret-keys`. */
export function addSecretKeys(program: Command, cli: Cli): void {
  const keys = program
    .command('secret-keys')
    .description('show the keys of SECRET_KEY that the database knows, and go on after one was lost')
    .addHelpText('after', HELP);
  addFlags(keys.command('list'))
    .description('show the keys, oldest first')
    .action((flags: Flags) => withKeys(cli, flags, (manager) => list(cli, flags, manager)));
  addFlags(keys.command('forget'))
    .description('let processes start without a key that is lost')
    .argument('<id>', 'the id of the key, as it stands before the colon')
    .action((id: string, flags: Flags) =>
      withKeys(cli, flags, async (manager) => {
        await manager.forget(id);
        print(cli, flags.json ? JSON.stringify({ forgotten: id }) : `forgot ${id}`);
      }),
    );
}

function addFlags(command: Command): Command {
  return command
    .option('--data-dir <dir>', 'the data directory of `attest up` (DATA_DIR, .data)')
    .option('--json', 'print JSON')
    .addHelpText('after', HELP);
}

async function withKeys(
  cli: Cli,
  flags: Flags,
  use: (manager: SecretKeyManager) => Promise<void>,
): Promise<void> {
  const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'secret-keys' }));
  await (await import('../../server/process/run.js')).withSecretKeys(config, use);
}

async function list(cli: Cli, { json }: Flags, manager: SecretKeyManager): Promise<void> {
  const keys = await manager.list();
  if (json) {
    const rows = keys.map(({ id, firstUsedAt, webhooks }) => ({ id, first_used_at: firstUsedAt, webhooks }));
    print(cli, JSON.stringify(rows));
    return;
  }
  const cells = keys.map(({ id, firstUsedAt, webhooks }) => [
    id,
    firstUsedAt.toISOString(),
    String(webhooks),
  ]);
  print(cli, formatTable([['ID', 'FIRST USED', 'WEBHOOKS UNDER IT'], ...cells]));
}
