import { Command, CommanderError } from 'commander';
import { version } from '../server/core/version.js';
import type { AddCommand, Cli } from './cli.js';

/** The commands in the order of `--help`. Each module is imported only when its command is called. */
const COMMANDS: ReadonlyMap<string, () => Promise<AddCommand>> = new Map([
  ['up', async () => (await import('./commands/server/up.js')).addUp],
  ['api', async () => (await import('./commands/server/api.js')).addApi],
  ['worker', async () => (await import('./commands/server/worker.js')).addWorker],
  ['witness', async () => (await import('./commands/server/witness.js')).addWitness],
  ['migrate', async () => (await import('./commands/server/migrate.js')).addMigrate],
  ['projects', async () => (await import('./commands/admin/projects.js')).addProjects],
  ['keys', async () => (await import('./commands/admin/keys.js')).addKeys],
  ['dashboard', async () => (await import('./commands/admin/dashboard.js')).addDashboard],
  ['usage', async () => (await import('./commands/admin/usage.js')).addUsage],
  ['audit-log', async () => (await import('./commands/admin/audit-log.js')).addAuditLog],
  ['witnesses', async () => (await import('./commands/admin/witnesses.js')).addWitnesses],
  ['log', async () => (await import('./commands/admin/log.js')).addLog],
  ['dsse-keys', async () => (await import('./commands/admin/dsse-keys.js')).addDsseKeys],
  ['secret-keys', async () => (await import('./commands/admin/secret-keys.js')).addSecretKeys],
  ['submit', async () => (await import('./commands/submissions/submit.js')).addSubmit],
  ['lookup', async () => (await import('./commands/submissions/lookup.js')).addLookup],
  ['correct', async () => (await import('./commands/submissions/correct.js')).addCorrect],
  ['redact', async () => (await import('./commands/submissions/redact.js')).addRedact],
  ['bundle', async () => (await import('./commands/submissions/bundle.js')).addBundle],
  ['set', async () => (await import('./commands/sets/set.js')).addSet],
  ['verify', async () => (await import('./commands/verify/verify.js')).addVerify],
  ['verify-page', async () => (await import('./commands/verify/verify-page.js')).addVerifyPage],
  ['audit', async () => (await import('./commands/verify/audit.js')).addAudit],
  ['webhooks', async () => (await import('./commands/webhooks/webhooks.js')).addWebhooks],
  ['exports', async () => (await import('./commands/exports/exports.js')).addExports],
]);

const EXIT_CODES = `
Exit codes: 0 done (verify: verified), 1 failed (verify: not verified; lookup: not found; audit: log not intact),
            2 invalid arguments or settings (verify, audit: could not check), audit also: 3 split view, 4 nothing new`;

/** Parses `args` and runs the command. Never throws; sets `cli.exitCode`. */
export async function runProgram(cli: Cli, args: readonly string[]): Promise<void> {
  const json = args.includes('--json');
  const program = new Command('attest')
    .description('Attest files in an append-only log with independent witnesses.')
    .version(version(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help for a command')
    .addHelpText('after', EXIT_CODES)
    .showHelpAfterError('(--help shows the usage)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void cli.stdout.write(text),
      writeErr: (text) => json || cli.stderr.write(text),
      getOutHelpWidth: () => cli.stdout.columns ?? 100,
      getErrHelpWidth: () => cli.stderr.columns ?? 100,
    });
  try {
    for (const load of findCommands(args[0])) (await load())(program, cli);
    if (args.length === 0) program.help({ error: true });
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    // Commander has printed the version or the help.
    if (error instanceof CommanderError && error.exitCode === 0) return;
    const { reportError } = await import('./output/report-error.js');
    reportError(cli, error, { json });
  }
}

/** All commands, for the help, unless the first argument needs one of them or none. */
function findCommands(name = ''): (() => Promise<AddCommand>)[] {
  if (name === '--version') return [];
  const called = COMMANDS.get(name);
  return called === undefined ? [...COMMANDS.values()] : [called];
}
