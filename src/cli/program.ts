import { Command } from 'commander';
import { version } from '../server/core/version.js';
import type { AddCommand, Cli } from './cli.js';
import { reportError } from './output/report-error.js';

/** The commands in the order of `--help`. Each module is imported only when its command is called. */
const COMMANDS: ReadonlyMap<string, () => Promise<AddCommand>> = new Map([
  ['up', async () => (await import('./commands/up.js')).addUp],
  ['api', async () => (await import('./commands/api.js')).addApi],
  ['worker', async () => (await import('./commands/worker.js')).addWorker],
  ['witness', async () => (await import('./commands/witness.js')).addWitness],
  ['migrate', async () => (await import('./commands/migrate.js')).addMigrate],
  ['projects', async () => (await import('./commands/projects.js')).addProjects],
  ['keys', async () => (await import('./commands/keys.js')).addKeys],
  ['dashboard', async () => (await import('./commands/dashboard.js')).addDashboard],
  ['usage', async () => (await import('./commands/usage.js')).addUsage],
  ['audit-log', async () => (await import('./commands/audit-log.js')).addAuditLog],
  ['witnesses', async () => (await import('./commands/witnesses.js')).addWitnesses],
  ['log', async () => (await import('./commands/log.js')).addLog],
  ['dsse-keys', async () => (await import('./commands/dsse-keys.js')).addDsseKeys],
  ['secret-keys', async () => (await import('./commands/secret-keys.js')).addSecretKeys],
  ['submit', async () => (await import('./commands/submit.js')).addSubmit],
  ['lookup', async () => (await import('./commands/lookup.js')).addLookup],
  ['correct', async () => (await import('./commands/correct.js')).addCorrect],
  ['redact', async () => (await import('./commands/redact.js')).addRedact],
  ['bundle', async () => (await import('./commands/bundle.js')).addBundle],
  ['verify', async () => (await import('./commands/verify.js')).addVerify],
  ['verify-sigstore', async () => (await import('./commands/verify-sigstore.js')).addVerifySigstore],
  ['verify-page', async () => (await import('./commands/verify-page.js')).addVerifyPage],
  ['audit', async () => (await import('./commands/audit.js')).addAudit],
  ['webhooks', async () => (await import('./commands/webhooks.js')).addWebhooks],
  ['exports', async () => (await import('./commands/exports.js')).addExports],
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
    const called = COMMANDS.get(args[0] ?? '');
    for (const load of called ? [called] : COMMANDS.values()) (await load())(program, cli);
    if (args.length === 0) program.help({ error: true });
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    reportError(cli, error, { json });
  }
}
