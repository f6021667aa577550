/** `attest submit <folder>`: one submission for all files of a folder. */
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../../client/client.js';
import type { PresentFile } from '../../../proof/set/compare-files.js';
import { headJson, type NotBefore } from '../../../proof/set/head.js';
import { countFiles } from '../../../proof/set/verify-set.js';
import { type Cli, printError, UsageError } from '../../cli.js';
import { onInterruption } from '../../input/interruption.js';
import { formatSize } from '../../output/progress.js';
import { assertNew } from '../../output/write-output.js';
import type { GitState } from '../../results/git/git-state.js';
import { withGit } from '../../results/git/with-git.js';
import { readEarlierSet } from '../../sets/earlier-set.js';
import { type FolderFlags, readFolder } from '../../sets/folder-files.js';
import { type WrittenSet, writeSet } from '../../sets/make-set.js';
import { type Build, continuation, submissionKey } from '../../submit/build.js';
import { defaultMetadata, recordedName } from '../../submit/recorded-name.js';
import type { StatementFlags } from '../../submit/statement.js';
import { submitOne } from '../../submit/submit-one.js';

/** Flags of sets. */
export type SetFlags = FolderFlags & { set?: string; bundle?: string; force?: boolean; notBefore?: boolean };

type Flags = SetFlags & StatementFlags & { wait?: boolean; quiet?: boolean; json?: boolean };

/** What is submitted, and how long --wait waits. */
type SetSubmission = {
  readonly client: Client;
  readonly build: Build;
  /** A package URL by default. */
  readonly metadata: JsonObject | undefined;
  /** Added to the metadata. */
  readonly git?: GitState | undefined;
  readonly validation: ValidationMode;
  readonly timeoutMs: number;
  /** Finds the checkpoint for --not-before. */
  readonly findNotBefore: () => Promise<NotBefore>;
};

type Submitting = { readonly flags: Flags; readonly submission: SetSubmission };

/** What a set is made of: the files of a folder, or the parts of a log. */
export type SetSource = {
  /** Where it is, which is printed and recorded. */
  readonly path: string;
  /** Yields hashed files in the order of their paths in the set, without the `outputs`, which are paths of files anywhere. */
  readonly read: (asked: { outputs: readonly string[]; signal: AbortSignal }) => AsyncIterable<PresentFile>;
  /** The metadata of what was read to its end. */
  readonly describe?: (given: JsonObject | undefined) => JsonObject;
};

/** The files of a folder that the flags choose. */
export function folderSource(cli: Cli, folder: string, flags: FolderFlags): SetSource {
  return { path: folder, read: (asked) => readFolder(cli, folder, { flags, ...asked }) };
}

/**
 * Writes the set of a folder or log, then submits its head in one call; with --wait writes the bundle, too. The set file of the same
 * build is taken again. Throws UsageError before anything is hashed if a flag is wrong or a file is in the way, and what
 * hashing, writing and the call throw.
 */
export async function submitSet(cli: Cli, source: SetSource, submitting: Submitting): Promise<void> {
  const { flags, submission } = submitting;
  const { set: setFile = `${basename(resolve(source.path))}.set.json`, bundle } = flags;
  if (bundle !== undefined && !flags.wait) throw new UsageError('--bundle needs --wait');
  if (bundle !== undefined && resolve(bundle) === resolve(setFile))
    throw new UsageError('--set and --bundle are one file');
  for (const path of [setFile, bundle]) {
    if (path !== undefined && !submission.build.isGiven) assertNew(path, flags);
  }
  const interruption = onInterruption(cli, 'stopping; repeat to exit at once');
  const { signal } = interruption;
  try {
    const set = await makeSet({ source, setFile, signal }, submitting);
    if (set === undefined || signal.aborted) {
      printError(cli, 'interrupted: nothing was submitted');
      printError(cli, continuation(cli, submission.build));
      return;
    }
    printError(cli, `wrote ${setFile}, a set of ${countFiles(set.head.entries)}, ${formatSize(set.bytes)}`);
    await submitHead(cli, { source, setFile, set, signal }, submitting);
  } finally {
    interruption.end();
  }
}

/** Returns undefined if the signal aborts. */
async function makeSet(
  { source, setFile, signal }: { source: SetSource; setFile: string; signal: AbortSignal },
  { flags, submission }: Submitting,
): Promise<WrittenSet | undefined> {
  const isContinued = submission.build.isGiven && !flags.force && existsSync(setFile);
  const earlier = isContinued ? await readEarlierSet(setFile) : undefined;
  const notBefore = flags.notBefore
    ? (earlier?.head.notBefore ?? (await submission.findNotBefore()))
    : undefined;
  const outputs = flags.bundle === undefined ? [setFile] : [setFile, flags.bundle];
  const { force } = flags;
  const files = source.read({ outputs, signal });
  return await writeSet(setFile, files, { notBefore, earlier, force }).catch((error: unknown) => {
    if (signal.aborted) return undefined;
    throw error;
  });
}

type Made = { source: SetSource; setFile: string; set: WrittenSet; signal: AbortSignal };

async function submitHead(
  cli: Cli,
  { source, setFile, set, signal }: Made,
  { flags, submission }: Submitting,
): Promise<void> {
  const { build } = submission;
  const sha256 = set.headSha256;
  const made = { file: setFile, head: headJson(set.head), head_sha256: sha256, bytes: set.bytes };
  const name = recordedName(source.path, process.cwd()) || basename(resolve(source.path));
  const given = submission.metadata;
  const described = source.describe?.(given) ?? given ?? defaultMetadata(name, sha256);
  const metadata = withGit(described, submission.git);
  const one = {
    ...submission,
    label: source.path,
    name,
    sha256,
    statement: flags,
    metadata,
    idempotencyKey: submissionKey(build, { name, sha256 }),
    wait: flags.wait ?? false,
    bundle: flags.bundle,
    isContinued: build.isGiven && !flags.force,
    json: { set: made },
    howToContinue: `${setFile} is kept; ${continuation(cli, build)}`,
    signal,
  };
  await submitOne(cli, one, flags);
}
