/** `attest submit <folder>`: one submission for all files of a folder. */
import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import {
  type Submission,
  SubmissionSchema,
  SubmissionStatusSchema,
  type ValidationMode,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../../client/client.js';
import { headJson, type NotBefore } from '../../../proof/set/head.js';
import { countFiles } from '../../../proof/set/verify-set.js';
import { enumName } from '../../../protocol/enum-names.js';
import { printable } from '../../../protocol/printable.js';
import { compileWriter } from '../../../server/json/codec.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import { onInterruption } from '../../input/interruption.js';
import { formatSize } from '../../output/progress.js';
import { errorText } from '../../output/report-error.js';
import { type FolderFlags, readFolder } from '../../sets/folder-files.js';
import { type WrittenSet, writeSet } from '../../sets/make-set.js';
import { assertNew } from '../../sets/set-file.js';

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
    const created = await create(cli, { name, set, setFile }, options);
    const landed = flags.wait ? await waitFor(cli, created, { ...options, signal }) : created;
    printSubmission(cli, { folder, setFile, set, submission: landed }, flags);
    if (bundle !== undefined && !signal.aborted && cli.exitCode === 0) {
      await writeBundle(cli, options.client, landed.id, bundle);
    }
  } finally {
    interruption.end();
  }
}

async function create(
  cli: Cli,
  { name, set, setFile }: { name: string; set: WrittenSet; setFile: string },
  { client, makeMetadata, validation }: SetSubmission,
): Promise<Submission> {
  const sha256 = set.headSha256;
  try {
    const metadata = makeMetadata(name, sha256);
    return await client.attestations.create({ artifact: { sha256 }, metadata, validation });
  } catch (error) {
    printError(cli, `${setFile} is kept: \`attest submit\` with --force makes the set anew`);
    throw error;
  }
}

/** The submission once it is witnessed; as it was, with the error printed, if that fails or the signal aborts. */
async function waitFor(
  cli: Cli,
  created: Submission,
  { client, timeoutMs, signal }: SetSubmission & { signal: AbortSignal },
): Promise<Submission> {
  try {
    const found = await client.attestations.waitUntilWitnessed(created.id, { timeoutMs, signal });
    return { ...found, warnings: created.warnings };
  } catch (error) {
    if (signal.aborted) return created;
    cli.exitCode = 1;
    printError(cli, `error: ${created.id}: ${errorText(error)}`);
    return created;
  }
}

async function writeBundle(cli: Cli, { attestations }: Client, id: string, file: string): Promise<void> {
  const { data } = await attestations.downloadBundle({ id, format: 'bundle.json' });
  await writeFile(file, data).catch((error: Error) => {
    throw new UsageError(`${file} cannot be written: ${error.message}`);
  });
  printError(cli, `wrote ${file}, ${data.length} bytes`);
}

const writeSubmission = compileWriter(SubmissionSchema);

type Printed = { folder: string; setFile: string; set: WrittenSet; submission: Submission };

function printSubmission(
  cli: Cli,
  { folder, setFile, set, submission }: Printed,
  { json, quiet }: Flags,
): void {
  for (const { message } of submission.warnings) printError(cli, `warning: ${printable(message)}`);
  if (json) {
    const made = { file: setFile, head: headJson(set.head), head_sha256: set.headSha256, bytes: set.bytes };
    const head = JSON.stringify({ file: folder, set: made });
    print(cli, `${head.slice(0, -1)},"submission":${writeSubmission(submission)}}`);
  } else if (quiet) print(cli, submission.id);
  else {
    const status = enumName(SubmissionStatusSchema, submission.status);
    print(cli, `${submission.id}  ${status}  ${printable(folder)}`);
  }
}
