import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import { type Cli, UsageError } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { parseCount, parseDuration } from '../../flags/flag-values.js';
import { type MetadataFlags, readMetadata } from '../../flags/metadata-flags.js';
import { openClient } from '../../flags/open-client.js';
import { addImageFlags, IMAGE_HELP, type ImageFlags, imageInputs } from '../../oci/submit-images.js';
import { evaluationSource } from '../../results/evaluation/evaluation-source.js';
import { type GitFlags, readGit } from '../../results/git/with-git.js';
import { submitJUnit } from '../../results/junit/submit-junit.js';
import { assertAlone, RESULTS_HELP, type ResultsFlags } from '../../results/results-flags.js';
import { RUN_URL_HELP } from '../../results/run-url.js';
import { snapshotInputs } from '../../results/snapshots/snapshot-inputs.js';
import { addFolderFlags, collectPattern, FOLDER_HELP, isFolder } from '../../sets/folder-files.js';
import { findNotBefore } from '../../sets/not-before.js';
import { BUILD_HELP, type BuildFlags, readBuild } from '../../submit/build.js';
import { gatherInputs, INPUT_HELP, type InputFlags } from '../../submit/inputs.js';
import { STATEMENT_HELP } from '../../submit/statement.js';
import { type FilesFlags, submitFiles } from './submit-files.js';
import { submitPublic } from './submit-public.js';
import { folderSource, type SetFlags, type SetSource, submitSet } from './submit-set.js';

type Flags = ClientFlags &
  MetadataFlags &
  SetFlags &
  InputFlags &
  FilesFlags &
  BuildFlags &
  GitFlags &
  ImageFlags &
  ResultsFlags & {
    junit?: string[];
    runUrl?: string;
    verifyUrl?: string;
    trustRoots?: string;
    lenient?: boolean;
    timeout: string;
    concurrency: string;
  };

const HELP = `
Hashes files locally and submits the hashes, up to 1,000 in a call; file contents are never sent. Prints ID, status and file of each submission,
in the order of the files. The default metadata is a package URL with the file's path from the current folder
(pkg:generic/<path>?checksum=sha256:<hash>, schema purl); of a file elsewhere, or given by an absolute path, with its name alone.
${INPUT_HELP}

--junit attests a report of tests (pytest, Jest, Vitest, Playwright, Go, Maven, Gradle, Bazel); of a folder its TEST-*.xml, or
else all *.xml; several as a set. The metadata is made of it (intoto.test_result.v0.1), with the hashes of the files. --git
records commit, branch, and whether files differ from it; in a package URL remote and commit, as vcs_url.

Of a folder it makes a set, whose head is submitted in one call: the set file has each file's path in the folder, its hash
and a salt. Keep it with the bundle: \`attest verify\` takes both, \`attest set\` shows one file of it. It is written before the submission.
With --each, each file of the folder is a submission. --not-before puts the newest checkpoint of the log into the head, which
proves that the set was closed after it.
${FOLDER_HELP}

--wait --bundles writes the bundle of each file as soon as it is witnessed, as <folder>/<path>.bundle.json; of a folder that
has this one in it, bundles are no files. One submission is polled for its whole batch; only bundles are a call each.
${RESULTS_HELP}
${STATEMENT_HELP}
${IMAGE_HELP}
${BUILD_HELP}
${CLIENT_HELP}

Examples:
  $ attest submit dist/*.tgz --wait
  $ attest submit art/ --set run.set.json --wait --bundle run.bundle.json
  $ attest submit art/ --exclude '*.tmp' --not-before
  $ attest submit art/ --each --build "$CI_PIPELINE_ID" --wait --bundles bundles/
  $ find . -name '*.png' -print0 | attest submit --files-from - --null
  $ sha256sum dist/* > SHA256SUMS && attest submit --checksums SHA256SUMS
  $ attest submit --junit report.xml dist/app.tgz --git
  $ attest submit --junit report.xml dist/* --public --wait -o build.bundle.json
  $ attest submit --junit 'target/surefire-reports/TEST-*.xml' --set junit.set.json --run-url ci
  $ attest submit --eval logs/arithmetic.eval --set run.set.json --wait --bundle run.bundle.json
  $ attest submit --snapshots tests/ --report report.json --wait --bundles bundles/
  $ attest submit --oci registry.example.com/app@sha256:<hex> --wait --push
  $ attest submit model.bin --metadata '{"schema": "purl", "purl": "pkg:huggingface/acme/model@1"}' --json`;

/** `attest submit`. */
export function addSubmit(program: Command, cli: Cli): void {
  addFolderFlags(addImageFlags(addClientFlags(program.command('submit'))))
    .argument('[file...]', 'files, or one folder, to attest; sha256:<hex>, or - for standard input')
    .option('--files-from <file>', 'submit the files that a list names, too')
    .option('-0, --null', 'names in that list end with a NUL')
    .option('--checksums <file>', 'submit the digests of a file of checksums, too')
    .option(
      '--junit <report>',
      'attest test reports, as a test result of <file...>; repeatable',
      collectPattern,
    )
    .option('--git', 'record the commit in the metadata')
    .option('--run-url <url>', RUN_URL_HELP)
    .option('--eval <log>', 'submit the log of an evaluation, as a set with its samples')
    .option('--dataset <file>', 'record the hash of the dataset of --eval')
    .option('--snapshots <folder>', 'submit each snapshot of a user interface in a folder')
    .option('--report <file>', "Playwright's JSON report, for --snapshots")
    .option('--set <file>', 'set file to write of a folder (default: <folder>.set.json)')
    .option('--force', 'overwrite set file and bundles')
    .option('--not-before', "put the log's newest checkpoint into the set")
    .option('--trust-roots <file>', 'trust roots for --not-before: a copy of trust_roots.json')
    .option('--verify-url <url>', 'base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)')
    .option('--each', 'submit each file of a folder by itself')
    .option('-o, --bundle <file>', 'write the bundle of one submission; needs --wait')
    .option('--bundles <folder>', 'write the bundle of each file; needs --wait')
    .option('--build <id>', 'build that the submissions are of: running again continues it')
    .option('--resume <id>', 'continue the run that printed this ID')
    .option('--schema <name>', 'schema of the metadata')
    .option('--metadata <json>', 'metadata for every file, as JSON or @<file>')
    .option('--public', 'make the statement public: one submission, with the files as its subjects')
    .option('--names', "put the files' names into the signed statements")
    .option('--lenient', 'accept metadata that fails its schema')
    .option('--wait', 'wait until the submissions are witnessed')
    .option('--timeout <duration>', 'timeout of --wait for each, 1s to 30d', '10m')
    .option('--concurrency <count>', 'files in parallel, 1 to 64', '4')
    .option('--quiet', 'print only the IDs')
    .option('--json', 'print one line of JSON per file')
    .addHelpText('after', HELP)
    .action((files: string[], flags: Flags) => submit(cli, files, flags));
}

async function submit(cli: Cli, given: readonly string[], flags: Flags): Promise<void> {
  if (flags.junit !== undefined) return submitJUnit(cli, { junit: flags.junit, files: given }, flags);
  if (flags.runUrl !== undefined) throw new UsageError('--run-url needs --junit');
  const source = findSource(cli, given, flags);
  const concurrency = parseCount('--concurrency', flags.concurrency, 64);
  const timeoutMs = parseDuration('--timeout', flags.timeout, '1s', '30d');
  const build = readBuild(flags, () => `run-${randomBytes(8).toString('hex')}`);
  const metadata = await readMetadata(flags);
  const git = await readGit(cli, flags);
  const validation = flags.lenient ? ValidationMode.LENIENT : ValidationMode.STRICT;
  const client = openClient(cli, flags);
  const images = await imageInputs(cli, flags);
  const isOne = isOnePublic(flags);
  if (source === undefined) {
    const { snapshots } = flags;
    const inputs =
      snapshots === undefined
        ? await gatherInputs(cli, given, {
            ...flags,
            each: flags.each || isOne,
            more: images,
          })
        : await snapshotInputs(snapshots, flags);
    const submission = { client, build, metadata, git, concurrency, timeoutMs, flags };
    if (isOne) await submitPublic(cli, inputs, submission);
    else await submitFiles(cli, inputs, { ...submission, validation });
    return;
  }
  const submission = {
    client,
    build,
    metadata,
    git,
    validation,
    timeoutMs,
    findNotBefore: () => findNotBefore(cli, flags),
  };
  await submitSet(cli, source, { flags, submission });
}

/** Whether the files are the subjects of one public statement. */
function isOnePublic({ public: isPublic, each, snapshots }: Flags): boolean {
  return isPublic === true && !each && snapshots === undefined;
}

/** What a set is made of. Throws UsageError if flags and files do not go together. */
function findSource(cli: Cli, given: readonly string[], flags: Flags): SetSource | undefined {
  assertAlone(given, flags);
  if (flags.eval !== undefined) return evaluationSource(cli, flags.eval, flags);
  const folder = findFolder(given, flags);
  return folder === undefined ? undefined : folderSource(cli, folder, flags);
}

/** The folder of which a set is made. Throws UsageError if flags and files do not go together. */
function findFolder(given: readonly string[], flags: Flags): string | undefined {
  const { filesFrom, checksums, snapshots, oci } = flags;
  if (given.length === 0 && [filesFrom, checksums, snapshots, oci].every((flag) => flag === undefined))
    throw new UsageError('there is nothing to submit: name a file or folder');
  const folder = given.find(isFolder);
  const { set, bundle, bundles, force, notBefore, include, exclude, followSymlinks } = flags;
  const isOne = isOnePublic(flags);
  const isSet = folder !== undefined && !flags.each && !(isOne && set === undefined);
  const isOfSet = [set, bundle, notBefore].some((flag) => flag !== undefined);
  const isOfFolder = [include, exclude, followSymlinks].some((flag) => flag !== undefined);
  const isOfOne = isOne && [set, notBefore].every((flag) => flag === undefined);
  if (isOfSet && !isSet && !isOfOne)
    throw new UsageError('--set, --bundle and --not-before are for the set of a folder, without --each');
  if (isOfFolder && folder === undefined)
    throw new UsageError('--include, --exclude and --follow-symlinks need a folder');
  if (bundles !== undefined && (isSet || isOne))
    throw new UsageError(
      '--bundles is for files, or a folder with --each: --bundle writes that of one submission',
    );
  if (bundles !== undefined && !flags.wait) throw new UsageError('--bundles needs --wait');
  if (force && !isSet && bundles === undefined && bundle === undefined)
    throw new UsageError('--force is for set file and bundles: there is neither');
  if (!isSet) return undefined;
  if (given.length === 1 && [filesFrom, checksums, oci].every((flag) => flag === undefined)) return folder;
  throw new UsageError(
    `${folder} is a directory: submit it alone, as one set, or with --each, which submits every file by itself`,
  );
}
