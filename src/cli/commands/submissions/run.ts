import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../../client/client.js';
import type { Env } from '../../../config/settings.js';
import { type Cli, printError, UsageError } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { parseDuration } from '../../flags/flag-values.js';
import { openClient } from '../../flags/open-client.js';
import { onInterruption } from '../../input/interruption.js';
import { reportError } from '../../output/report-error.js';
import { describeRun, type RunFlags } from '../../results/describe-run.js';
import type { GitState } from '../../results/git/git-state.js';
import { readGit, withGit } from '../../results/git/with-git.js';
import { isPlural } from '../../results/junit/find-reports.js';
import type { RunDetails } from '../../results/junit/test-result.js';
import {
  describeCommand,
  noteBefore,
  readWritten,
  runMetadata,
  runResults,
  type Watched,
  type Written,
} from '../../results/run/attest-run.js';
import { type CommandEnd, exitCodeOf, runCommand } from '../../results/run/run-command.js';
import type { Snapshot } from '../../results/run/written-files.js';
import { RUN_URL_HELP } from '../../results/run-url.js';
import { assertOutputs, type ResultFlags, submitResults } from '../../results/submit-results.js';
import { addFolderFlags, collectPattern, FOLDER_HELP, type FolderFlags } from '../../sets/folder-files.js';
import { type Build, continuation, laterSubmission, readBuild } from '../../submit/build.js';
import { recordedNameIn } from '../../submit/recorded-name.js';
import { submitFiles } from './submit-files.js';

type Flags = ClientFlags &
  RunFlags &
  ResultFlags &
  FolderFlags & {
    junit?: string[];
    attest?: string[];
    onlyPassing?: boolean;
    recordCommand?: boolean;
    each?: boolean;
    build?: string;
    timeout: string;
  };

const HELP = `
Runs the command, then attests the reports it wrote, and the files in the folders of --attest that are new or changed since
before it ran. One report is attested itself, unless --set or --attest is given; else all are one set. With --each
the report is one submission, and each file another, with a package URL. The metadata is a test result
(intoto.test_result.v0.1): of the reports, and FAILED if the command failed.

The exit code is the command's, also if attesting fails then: 127 not found, 128 and the signal's number if killed. If the
command passes and attesting fails, it is 1. Standard output is the command's; what attest prints is on standard error. Of the
command only the program's name is recorded, unless --record-command is given: arguments may hold secrets.
${FOLDER_HELP}
${CLIENT_HELP}

Examples:
  $ attest run --junit report.xml -- pytest --junit-xml=report.xml
  $ attest run --junit 'target/surefire-reports/TEST-*.xml' --git --run-url ci -- mvn -B test
  $ attest run --junit r.xml --attest shots/ --set run.set.json --wait -o run.bundle.json -- npx playwright test
  $ attest run --attest dist/ --only-passing -- make release`;

/** `attest run`. */
export function addRun(program: Command, cli: Cli): void {
  addFolderFlags(addClientFlags(program.command('run')))
    .argument('<command...>', 'command to run, after --')
    .option('--junit <report>', 'report, folder of reports, or quoted pattern; repeatable', collectPattern)
    .option(
      '--attest <folder>',
      'folder whose new and changed files are attested; repeatable',
      collectPattern,
    )
    .option('--each', 'submit report and files each by itself')
    .option('--only-passing', 'attest nothing if the command or a test fails')
    .option('--git', 'record commit, branch, and whether files differ from it')
    .option('--run-url <url>', RUN_URL_HELP)
    .option('--record-command', "record the command's arguments as well")
    .option('--set <file>', 'set file to write if there are several files (default: run.set.json)')
    .option('-o, --bundle <file>', 'write the bundle; needs --wait')
    .option('--public', 'make the statement public, of report and files as its subjects')
    .option('--force', 'overwrite set file and bundle')
    .option('--build <id>', 'build that the run is of, such as a CI run')
    .option('--wait', 'wait until the submission is witnessed')
    .option('--timeout <duration>', 'timeout of --wait, 1s to 30d', '10m')
    .option('--quiet', 'print only the ID')
    .option('--json', 'print a line of JSON')
    .addHelpText('after', HELP)
    .action(async (command: string[], flags: Flags) => {
      cli.exitCode = await run(withoutOutput(cli), command, flags);
    });
}

/** Standard output is the command's: what would go there goes to standard error. Its standard input is not opened here. */
function withoutOutput(cli: Cli): Cli {
  const { env, stderr, now, self } = cli;
  return {
    env,
    get stdin() {
      return cli.stdin;
    },
    stdout: stderr,
    stderr,
    now,
    self,
    exitCode: 0,
  };
}

/** What is known before the command runs. */
type Prepared = {
  client: Client;
  build: Build;
  git: GitState | undefined;
  timeoutMs: number;
  watched: Watched;
  before: Snapshot;
  details: RunDetails;
};

/** Returns the exit code. Throws what is wrong before the command runs. */
async function run(cli: Cli, command: readonly string[], flags: Flags): Promise<number> {
  const prepared = await prepare(cli, flags);
  const end = await runCommand(withoutKeys(cli.env), command);
  if (end.problem !== undefined) {
    printError(cli, `error: ${end.problem}`);
    return end.exitCode;
  }
  if (end.interruptedBy !== undefined) {
    printError(cli, 'interrupted: nothing was attested');
    return end.exitCode || exitCodeOf(end.interruptedBy);
  }
  if (end.exitCode !== 0 && flags.onlyPassing) {
    printError(cli, `the command failed with exit code ${end.exitCode}: nothing was attested`);
    return end.exitCode;
  }
  const code = await attest(cli, { command, end, prepared }, flags);
  return end.exitCode || code;
}

const KEYS = /^ATTEST_(API_KEY|ID_TOKEN|ADMIN_TOKEN)(_FILE)?$/;

/** What the command, and all that it starts, has no use for; a report may have all of its environment. */
function withoutKeys(env: Env): Env {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !KEYS.test(name)));
}

async function prepare(cli: Cli, flags: Flags): Promise<Prepared> {
  const { junit = [], attest: folders = [] } = flags;
  if (junit.length + folders.length === 0)
    throw new UsageError('there is nothing to attest: give --junit <report>, --attest <folder>, or both');
  const timeoutMs = parseDuration('--timeout', flags.timeout, '1s', '30d');
  if (flags.each && (junit.length === 0 || folders.length === 0))
    throw new UsageError('--each needs --junit, whose report has the result, and --attest');
  if (flags.each && flags.set !== undefined) throw new UsageError('--each makes no set: leave out --set');
  const isOne = (flags.each || folders.length === 0) && junit.length === 1 && !junit.some(isPlural);
  // Only of the keys: another run of the command has other results.
  const { id } = readBuild(flags, () => `run-${randomBytes(8).toString('hex')}`);
  const build = { id, isGiven: false, ...(flags.each && { folders }) };
  if (flags.public && flags.each) throw new UsageError('--public is of one submission: leave out --each');
  assertOutputs(flags, flags.set ?? (isOne || flags.public ? undefined : 'run.set.json'), build);
  const client = openClient(cli, flags);
  const details = await describeRun(cli, [], flags);
  const watched = { junit, folders, flags };
  const git = await readGit(cli, flags);
  // Throws if it cannot be recorded.
  if (flags.each) withGit({ schema: 'purl', purl: 'pkg:generic/file' }, git);
  return { client, build, timeoutMs, watched, before: await noteBefore(watched), details, git };
}

type Ran = { command: readonly string[]; end: CommandEnd; prepared: Prepared };

/** Returns 0 if everything was attested, else the exit code, with the reason printed. */
async function attest(cli: Cli, { command, end, prepared }: Ran, flags: Flags): Promise<number> {
  const { watched, before, details } = prepared;
  const interruption = onInterruption(cli, 'stopping; repeat to exit at once');
  const { signal } = interruption;
  try {
    const written = await readWritten(cli, watched, { before, signal });
    const metadata = runMetadata(written, {
      ...details,
      command: describeCommand(command, end, flags.recordCommand),
    });
    if (metadata.result === 'FAILED' && flags.onlyPassing) {
      printError(cli, 'a test failed: nothing was attested');
      return 0;
    }
    const whole = flags.each ? { ...written, files: [] } : written;
    const results = runResults(whole, { metadata, watched, asSet: isSet(flags) });
    if (results === undefined)
      throw new Error(
        `the command wrote no report${flags.each ? '' : ' and no files'}: nothing was attested`,
      );
    const howToContinue = (sha256: string) => continuations(cli, { sha256, metadata }, { prepared, flags });
    await submitResults(cli, results, { flags, submission: { ...prepared, howToContinue, signal } });
    interruption.end();
    if (flags.each && !signal.aborted) await submitEach(cli, written, { prepared, flags });
  } catch (error) {
    if (signal.aborted) printError(cli, 'interrupted: nothing was attested');
    else reportError(cli, error, { json: flags.json ?? false });
    // 2 would pass for the command's.
    cli.exitCode = 1;
  } finally {
    interruption.end();
  }
  if (cli.exitCode !== 0 && end.exitCode === 0)
    printError(cli, 'the command passed, but attesting it was not completed');
  return cli.exitCode;
}

/** The lines that submit later what the run made. There is none of a public statement, whose subjects are not in the line. */
function continuations(
  cli: Cli,
  made: { sha256: string; metadata: JsonObject },
  { prepared: { build }, flags }: { prepared: Prepared; flags: Flags },
): string | undefined {
  if (flags.public) return undefined;
  const later = laterSubmission(cli, build, made);
  return flags.each ? `${later}\n${continuation(cli, build)}` : later;
}

/** Whether one report is attested as a set, too. */
function isSet({ set, attest = [], each }: Flags): boolean {
  return set !== undefined || (attest.length > 0 && !each);
}

/** Submits what the command wrote beside reports, each file with a package URL. */
async function submitEach(
  cli: Cli,
  { files }: Written,
  { prepared, flags }: { prepared: Prepared; flags: Flags },
): Promise<void> {
  const cwd = process.cwd();
  const inputs = files.map(({ file, folder, path, bytes, sha256 }) => ({
    label: file,
    name: recordedNameIn(folder, path, cwd),
    bytes,
    sha256,
  }));
  const { wait = false, quiet = false, json = false } = flags;
  const options = { ...prepared, metadata: undefined, validation: ValidationMode.STRICT, concurrency: 4 };
  if (inputs.length > 0) await submitFiles(cli, inputs, { ...options, flags: { wait, quiet, json } });
}
