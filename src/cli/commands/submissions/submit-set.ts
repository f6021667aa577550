/** `attest submit <folder>`: one submission for all files of a folder. */
import { basename, resolve } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import type { ValidationMode } from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../../client/client.js';
import { headJson, type NotBefore } from '../../../proof/set/head.js';
import { countFiles } from '../../../proof/set/verify-set.js';
import { type Cli, printError, UsageError } from '../../cli.js';
import { onInterruption } from '../../input/interruption.js';
import { formatSize } from '../../output/progress.js';
import { type FolderFlags, readFolder } from '../../sets/folder-files.js';
import { type WrittenSet, writeSet } from '../../sets/make-set.js';
import { assertNew } from '../../sets/set-file.js';
import { submitOne } from '../../submit/submit-one.js';

/** Flags of sets. */
export type SetFlags = FolderFlags & { set?: string; bundle?: string; force?: boolean; notBefore?: boolean };

type Flags = SetFlags & { wait?: boolean; quiet?: boolean; json?: boolean };

/** What is submitted, and how long --wait waits. */
type SetSubmission = {
  readonly client: Client;
  readonly makeMetadata: (name: string, sha256: string) => JsonObject;
  readonly validation: ValidationMode;
  readonly timeoutMs: number;
  /** Finds the checkpoint for --not-before. */
  readonly findNotBefore: () => Promise<NotBefore>;
};

/**
 * Writes the folder's set, then submits its head in one call; with --wait writes the bundle, too. Throws UsageError before
 * anything is hashed if a flag is wrong or a file is in the way, and what hashing, writing and the call throw.
 */
export async function submitSet(
  cli: Cli,
  folder: string,
  { flags, submission: options }: { flags: Flags; submission: SetSubmission },
): Promise<void> {
  const name = basename(resolve(folder));
  const { set: setFile = `${name}.set.json`, bundle } = flags;
  if (bundle !== undefined && !flags.wait) throw new UsageError('--bundle needs --wait');
  if (bundle !== undefined && resolve(bundle) === resolve(setFile))
    throw new UsageError('--set and --bundle are one file');
  for (const path of [setFile, bundle]) if (path !== undefined) assertNew(path, flags);
  const interruption = onInterruption(cli, 'stopping; repeat to exit at once');
  const { signal } = interruption;
  try {
    const notBefore = flags.notBefore ? await options.findNotBefore() : undefined;
    const outputs = bundle === undefined ? [setFile] : [setFile, bundle];
    const files = readFolder(cli, folder, { flags, outputs, signal });
    const set = await writeSet(setFile, files, notBefore).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (set === undefined || signal.aborted) {
      printError(cli, 'interrupted: nothing was submitted');
      return;
    }
    printError(cli, `wrote ${setFile}, a set of ${countFiles(set.head.entries)}, ${formatSize(set.bytes)}`);
    await submitHead(cli, { folder, setFile, set }, { flags, submission: options, signal });
  } finally {
    interruption.end();
  }
}

type Made = { folder: string; setFile: string; set: WrittenSet };

async function submitHead(
  cli: Cli,
  { folder, setFile, set }: Made,
  { flags, submission, signal }: { flags: Flags; submission: SetSubmission; signal: AbortSignal },
): Promise<void> {
  const { client, makeMetadata, validation, timeoutMs } = submission;
  const sha256 = set.headSha256;
  const made = { file: setFile, head: headJson(set.head), head_sha256: sha256, bytes: set.bytes };
  const one = {
    client,
    label: folder,
    sha256,
    metadata: makeMetadata(basename(resolve(folder)), sha256),
    validation,
    wait: flags.wait ?? false,
    timeoutMs,
    bundle: flags.bundle,
    json: { set: made },
    signal,
  };
  await submitOne(cli, one, flags).catch((error: unknown) => {
    printError(cli, `${setFile} is kept: \`attest submit\` with --force makes the set anew`);
    throw error;
  });
}
