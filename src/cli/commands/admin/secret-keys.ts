import type { Command } from 'commander';
import { readConfig } from '../../../config/config.js';
import type { SecretKeyManager } from '../../../server/process/secret-key-manager.js';
import { type Cli, print } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { addHelp } from '../../output/help.js';
import { formatTable } from '../../output/table.js';

type Flags = { dataDir?: string; json?: boolean };

const HELP = `
Uses the database of DATABASE_URL, or that of \`attest up\` in the data directory. The database identifies the keys of
SECRET_KEY by ID and fingerprint; a process whose keys do not match does not start.

To rotate, put the new key first: SECRET_KEY=k2:<new>,k1:<old>. Remove the old one when no webhook secret is encrypted
with it (\`attest webhooks rotate\`), no export's credentials are (workers re-encrypt them when they start) and no API key
from before the rotation is in use.

\`forget\` is for a lost key: webhook secrets, export credentials and API keys made with it are lost as well.`;

const EXAMPLES = ['attest secret-keys list', 'attest secret-keys forget k1'];

/** `attest secret-keys`. */
export function addSecretKeys(program: Command, cli: Cli): void {
  const keys = addHelp(program.command('secret-keys'), HELP, EXAMPLES);
  addFlags(keys.command('list'))
    .description('list keys, oldest first')
    .action((flags: Flags) => withKeys(cli, flags, (manager) => list(cli, flags, manager)));
  addFlags(keys.command('forget'))
    .description('allow processes to start without a lost key')
    .argument('<id>', 'key ID, the part before the colon')
    .action((id: string, flags: Flags) =>
      withKeys(cli, flags, async (manager) => {
        await manager.forget(id);
        print(cli, flags.json ? JSON.stringify({ forgotten: id }) : `forgot ${id}`);
      }),
    );
}

function addFlags(command: Command): Command {
  return addHelp(command, HELP, EXAMPLES)
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .option('--json', 'print JSON');
}

async function withKeys(
  cli: Cli,
  flags: Flags,
  use: (manager: SecretKeyManager) => Promise<void>,
): Promise<void> {
  const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'secret-keys' }));
  await (await import('../../../server/process/run.js')).withSecretKeys(config, use);
}

async function list(cli: Cli, { json }: Flags, manager: SecretKeyManager): Promise<void> {
  const keys = await manager.list();
  if (json) {
    const rows = keys.map(({ id, firstUsedAt, ...counts }) => ({
      id,
      first_used_at: firstUsedAt,
      ...counts,
    }));
    print(cli, JSON.stringify(rows));
    return;
  }
  const cells = keys.map(({ id, firstUsedAt, webhooks, exports }) => [
    id,
    firstUsedAt.toISOString(),
    String(webhooks),
    String(exports),
  ]);
  print(cli, formatTable([['ID', 'FIRST USED', 'WEBHOOKS', 'EXPORTS'], ...cells]));
}
