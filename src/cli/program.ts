import { Command, CommanderError } from 'commander';
import { version } from '../server/core/version.js';
import { type Cli, type Commands, UsageError } from './cli.js';
import { SERVER_COMMANDS } from './server-commands.js';

/** The commands in the order of `--help`, with what it says of them. */
const SUMMARIES: Readonly<Record<string, string>> = {
  up: 'run the whole service on this machine',
  api: 'serve the API',
  worker: 'seal batches, request witness signatures and deliver webhooks',
  witness: 'cosign the checkpoints of other logs',
  signer: 'sign with keys in an HSM or a key management service',
  migrate: 'apply pending migrations',
  doctor: 'check settings, keys and everything that the service needs',
  projects: 'create, list and change projects, which own keys and submissions',
  keys: 'create, list, update, rotate and revoke API keys',
  trust: 'let jobs of a CI exchange their tokens for API keys, so that they store none',
  people: 'invite people to the dashboard, list and change their roles',
  dashboard: 'make sign-in links to the dashboard, list and end its sessions',
  usage: 'show submissions and reads of a project or a key',
  'audit-log': 'show who changed what in the service, newest first',
  witnesses: 'show the status of the witnesses, and retry one now',
  tuf: "publish the trust roots in a TUF repository, for Sigstore's tools",
  submissions: 'erase the signed statement of a submission; this cannot be undone',
  log: 'show the logs, and recover from a frozen one',
  backup: 'check a restored backup against the published log',
  'dsse-keys': 'show and rotate the keys that sign statements',
  'secret-keys': 'list the keys of SECRET_KEY in the database, and recover from a lost one',
  login: 'keep the address and API key of a service in a profile',
  logout: 'delete a profile',
  profiles: 'list the profiles',
  me: 'show whose the API key is, what it may do and what it has used',
  health: 'check whether the service answers; needs no API key',
  submit: 'hash files, or a folder as one set, and submit the hashes',
  run: 'run a command and attest its test reports and what it wrote',
  get: 'show one submission',
  list: 'list submissions, newest first',
  status: 'show the status of submissions, a line each',
  batches: 'list the batches that hold submissions, or show one',
  lookup: 'list the submissions of files',
  correct: 'replace metadata that failed its schema',
  redact: 'erase the metadata of a submission; this cannot be undone',
  bundle: 'fetch the proof bundles of submissions',
  push: 'attach a proof bundle to an image in its registry',
  set: 'show a set of files, or parts of it',
  eval: 'show the log of an evaluation, or a sample of it',
  verify: 'verify a file or a folder against its proof bundle, or exported submissions',
  'verify-page': 'write a page that verifies bundles offline, as one HTML file',
  audit: 'check that the public log is complete and append-only, once or for ever',
  webhooks: 'create, list, test and listen to webhook subscriptions',
  exports: 'copy submissions and proof bundles continuously to storage of your own',
  completion: 'print a script that completes commands and flags for a shell',
};

/** What adds each command. */
const COMMANDS: Commands = new Map([
  ...SERVER_COMMANDS,
  ['projects', async () => (await import('./commands/admin/projects.js')).addProjects],
  ['keys', async () => (await import('./commands/admin/keys.js')).addKeys],
  ['trust', async () => (await import('./commands/admin/trust.js')).addTrust],
  ['people', async () => (await import('./commands/admin/people.js')).addPeople],
  ['dashboard', async () => (await import('./commands/admin/dashboard.js')).addDashboard],
  ['usage', async () => (await import('./commands/admin/usage.js')).addUsage],
  ['audit-log', async () => (await import('./commands/admin/audit-log.js')).addAuditLog],
  ['witnesses', async () => (await import('./commands/admin/witnesses.js')).addWitnesses],
  ['tuf', async () => (await import('./commands/tuf/tuf.js')).addTuf],
  ['submissions', async () => (await import('./commands/admin/submissions.js')).addSubmissions],
  ['login', async () => (await import('./commands/profiles/login.js')).addLogin],
  ['logout', async () => (await import('./commands/profiles/logout.js')).addLogout],
  ['profiles', async () => (await import('./commands/profiles/profiles.js')).addProfiles],
  ['me', async () => (await import('./commands/reads/me.js')).addMe],
  ['health', async () => (await import('./commands/reads/health.js')).addHealth],
  ['submit', async () => (await import('./commands/submissions/submit.js')).addSubmit],
  ['run', async () => (await import('./commands/submissions/run.js')).addRun],
  ['get', async () => (await import('./commands/reads/get.js')).addGet],
  ['list', async () => (await import('./commands/reads/list.js')).addList],
  ['status', async () => (await import('./commands/reads/status.js')).addStatus],
  ['batches', async () => (await import('./commands/reads/batches.js')).addBatches],
  ['lookup', async () => (await import('./commands/submissions/lookup.js')).addLookup],
  ['correct', async () => (await import('./commands/submissions/correct.js')).addCorrect],
  ['redact', async () => (await import('./commands/submissions/redact.js')).addRedact],
  ['bundle', async () => (await import('./commands/submissions/bundle.js')).addBundle],
  ['push', async () => (await import('./commands/submissions/push.js')).addPush],
  ['set', async () => (await import('./commands/sets/set.js')).addSet],
  ['eval', async () => (await import('./commands/results/eval.js')).addEval],
  ['verify', async () => (await import('./commands/verify/verify.js')).addVerify],
  ['verify-page', async () => (await import('./commands/verify/verify-page.js')).addVerifyPage],
  ['audit', async () => (await import('./commands/verify/audit.js')).addAudit],
  ['webhooks', async () => (await import('./commands/webhooks/webhooks.js')).addWebhooks],
  ['exports', async () => (await import('./commands/exports/exports.js')).addExports],
  ['completion', async () => (await import('./commands/completion/completion.js')).addCompletion],
]);

/** Needs the flags of all commands. */
const COMPLETION = 'completion';

const EXIT_CODES = `
Exit codes: 0 done (verify: verified), 1 failed (verify: not verified; lookup, status: not found or failed; audit: log not intact),
            2 invalid arguments or settings (verify, audit: could not check), audit also: 3 split view, 4 nothing new`;

/** The commands that only the package with the server has; none of them in that package. */
const ELSEWHERE = Object.keys(SUMMARIES).filter((name) => !COMMANDS.has(name));
/** Both packages have a program `attest`, which npm does not replace. */
const INSTALL_SERVER = 'npm uninstall -g @attestation-service/cli && npm install -g attestation-service';

/** Parses `args` and runs the command. Never throws; sets `cli.exitCode`. */
export async function runProgram(cli: Cli, args: readonly string[]): Promise<void> {
  const json = wantsJson(args);
  const program = new Command('attest')
    .description('Attest files in an append-only log with independent witnesses.')
    .version(version(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help for a command')
    .addHelpText('after', EXIT_CODES)
    .addHelpText('after', elsewhereText())
    .showHelpAfterError('(--help shows the usage)')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void cli.stdout.write(text),
      writeErr: (text) => json || cli.stderr.write(text),
      getOutHelpWidth: () => cli.stdout.columns ?? 100,
      getErrHelpWidth: () => cli.stderr.columns ?? 100,
    });
  try {
    await addCommands(program, cli, args);
    if (args.length === 0) program.help({ error: true });
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    // Commander has printed the version or the help.
    if (error instanceof CommanderError && error.exitCode === 0) return;
    const { reportError } = await import('./output/report-error.js');
    reportError(cli, error, { json });
  }
}

/**
 * Adds the command that is called, and of the others only name and summary, which suffices for the help and to suggest the
 * nearest name.
 */
async function addCommands(program: Command, cli: Cli, args: readonly string[]): Promise<void> {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'));
  const called = first === 'help' ? second : first;
  if (called !== undefined && ELSEWHERE.includes(called)) {
    throw new UsageError(`attest ${called} is in the package attestation-service: ${INSTALL_SERVER}`);
  }
  for (const [name, summary] of Object.entries(SUMMARIES)) {
    const load = name === called || called === COMPLETION ? COMMANDS.get(name) : undefined;
    if (load === undefined) program.command(name, { hidden: ELSEWHERE.includes(name) });
    else (await load())(program, cli);
    program.commands.at(-1)?.description(summary);
  }
}

function elsewhereText(): string {
  const names = ELSEWHERE.join(', ');
  return names === '' ? '' : `\nIn the package attestation-service: ${names}\n  ${INSTALL_SERVER}`;
}

/** Whether errors are printed as JSON, also before the flags are parsed. */
function wantsJson(args: readonly string[]): boolean {
  // What follows -- belongs to the command of `attest run`.
  const own = args.slice(0, [...args, '--'].indexOf('--'));
  return /(^|\0)--(json|output[=\0](nd)?json)(\0|$)/.test(own.join('\0'));
}
