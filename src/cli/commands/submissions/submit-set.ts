/** `attest submit <folder>`: one submission for all files of a folder. */
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../../client/client.js';
import { headJson, type NotBefore } from '../../../proof/set/head.js';
import { countFiles } from '../../../proof/set/verify-set.js';
import { type Cli, printError, UsageError } from '../../cli.js';
import { onInterruption } from '../../input/interruption.js';
import { formatSize } from '../../output/progress.js';
import type { GitState } from '../../results/git/git-state.js';
import { withGit } from '../../results/git/with-git.js';
import { readEarlierSet } from '../../sets/earlier-set.js';
import { type FolderFlags, readFolder } from '../../sets/folder-files.js';
import { type WrittenSet, writeSet } from '../../sets/make-set.js';
import { assertNew } from '../../sets/set-file.js';
import { type Build, continuation, submissionKey } from '../../submit/build.js';
import { findEarlier } from '../../submit/earlier.js';
import { callUntil } from '../../submit/grace.js';
import { defaultMetadata, recordedName } from '../../submit/recorded-name.js';
import { submitOne } from '../../submit/submit-one.js';

/** Flags of sets. */
export type SetFlags = FolderFlags & { set?: string; bundle?: string; force?: boolean; notBefore?: boolean };

type Flags = SetFlags & { wait?: boolean; quiet?: boolean; json?: boolean };

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

/**
 * Writes the folder's set, then submits its head in one call; with --wait writes the bundle, too. The set file of the same
 * build is taken again. Throws UsageError before anything is hashed if a flag is wrong or a file is in the way, and what
 * hashing, writing and the call throw.
 */
export async function submitSet(cli: Cli, folder: string, submitting: Submitting): Promise<void> {
  const { flags, submission } = submitting;
  const { set: setFile = `${basename(resolve(folder))}.set.json`, bundle } = flags;
  if (bundle !== undefined && !flags.wait) throw new UsageError('--bundle needs --wait');
  if (bundle !== undefined && resolve(bundle) === resolve(setFile))
    throw new UsageError('--set and --bundle are one file');
  for (const path of [setFile, bundle]) {
    if (path !== undefined && !submission.build.isGiven) assertNew(path, flags);
  }
  const interruption = onInterruption(cli, 'stopping; repeat to exit at once');
  const { signal } = interruption;
  try {
    const set = await makeSet(cli, { folder, setFile, signal }, submitting);
    if (set === undefined || signal.aborted) {
      printError(cli, 'interrupted: nothing was submitted');
      printError(cli, continuation(cli, submission.build));
      return;
    }
    printError(cli, `wrote ${setFile}, a set of ${countFiles(set.head.entries)}, ${formatSize(set.bytes)}`);
    await submitHead(cli, { folder, setFile, set, signal }, submitting);
  } finally {
    interruption.end();
  }
}

/** Returns undefined if the signal aborts. */
async function makeSet(
  cli: Cli,
  { folder, setFile, signal }: { folder: string; setFile: string; signal: AbortSignal },
  { flags, submission }: Submitting,
): Promise<WrittenSet | undefined> {
  const isContinued = submission.build.isGiven && !flags.force && existsSync(setFile);
  const earlier = isContinued ? await readEarlierSet(setFile) : undefined;
  const notBefore = flags.notBefore
    ? (earlier?.head.notBefore ?? (await submission.findNotBefore()))
    : undefined;
  const outputs = flags.bundle === undefined ? [setFile] : [setFile, flags.bundle];
  const files = readFolder(cli, folder, { flags, outputs, signal });
  return await writeSet(setFile, files, { notBefore, earlier }).catch((error: unknown) => {
    if (signal.aborted) return undefined;
    throw error;
  });
}

type Made = { folder: string; setFile: string; set: WrittenSet; signal: AbortSignal };

async function submitHead(
  cli: Cli,
  { folder, setFile, set, signal }: Made,
  { flags, submission }: Submitting,
): Promise<void> {
  const { client, build } = submission;
  const sha256 = set.headSha256;
  const made = { file: setFile, head: headJson(set.head), head_sha256: sha256, bytes: set.bytes };
  const name = recordedName(folder, process.cwd()) || basename(resolve(folder));
  const metadata = withGit(submission.metadata ?? defaultMetadata(name, sha256), submission.git);
  const sayHow = () => printError(cli, `${setFile} is kept; ${continuation(cli, build)}`);
  const earlier = await callUntil(signal, (signal) =>
    findEarlier(client, build, { artifactSha256: sha256, signal }),
  );
  if (earlier === undefined) return sayHow();
  const one = {
    ...submission,
    label: folder,
    sha256,
    metadata,
    build: build.id,
    earlier: earlier(sha256, metadata),
    idempotencyKey: submissionKey(build, { name, sha256 }),
    wait: flags.wait ?? false,
    bundle: flags.bundle,
    isContinued: build.isGiven && !flags.force,
    json: { set: made },
    signal,
  };
  const landed = await submitOne(cli, one, flags).catch((error: unknown) => {
    sayHow();
    throw error;
  });
  if (landed === undefined || signal.aborted) sayHow();
}
