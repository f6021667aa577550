/** One submission: created, waited for and printed, with its bundle as a file. */

import { existsSync } from 'node:fs';
import type { JsonObject } from '@bufbuild/protobuf';
import {
  type Submission,
  SubmissionSchema,
  SubmissionStatusSchema,
  type ValidationMode,
} from '../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../client/client.js';
import { enumName } from '../../protocol/enum-names.js';
import { printable } from '../../protocol/printable.js';
import { compileWriter } from '../../server/json/codec.js';
import { type Cli, print, printError, UsageError } from '../cli.js';
import { errorText } from '../output/report-error.js';
import { writeOutput } from '../output/write-output.js';
import type { Build } from './build.js';
import { readBundleId } from './bundle-folder.js';
import { findEarlier } from './earlier.js';
import { callUntil } from './grace.js';
import { type StatedFile, type StatementFlags, statedRequest } from './statement.js';

/** What is submitted, and what is done with it. */
type OneSubmission = {
  readonly client: Client;
  /** What is printed beside the ID: the path of a file or folder. */
  readonly label: string;
  /** The name that is recorded. */
  readonly name: string;
  readonly sha256: string;
  /** The form of the statement; private, without names, by default. */
  readonly statement?: StatementFlags | undefined;
  /** Of a public statement: its subjects beside this one. */
  readonly otherFiles?: readonly StatedFile[] | undefined;
  readonly metadata: JsonObject;
  readonly validation: ValidationMode;
  /** The build that it is of: what that has already is taken in place of a new submission. */
  readonly build?: Build | undefined;
  /** Random by default. */
  readonly idempotencyKey?: string | undefined;
  /** Whether to wait until it is witnessed, for at most `timeoutMs`. */
  readonly wait: boolean;
  readonly timeoutMs: number;
  /** The file to write the bundle to, once the submission is witnessed. */
  readonly bundle?: string | undefined;
  /** Called with the ID once it is witnessed. */
  readonly push?: ((id: string) => Promise<void>) | undefined;
  /** Whether a file may be there, if it is the bundle of this submission; by default any file is overwritten. */
  readonly isContinued?: boolean | undefined;
  /** Further members of the line of JSON, before `submission`. */
  readonly json?: object | undefined;
  /** The line that says how to go on, printed if it ends before that. */
  readonly howToContinue: string | undefined;
  /** Of an interruption: a call under way gets half a second more, a wait ends at once. */
  readonly signal: AbortSignal;
};

/** Flags that choose what is printed. */
type PrintFlags = { readonly quiet?: boolean; readonly json?: boolean };

/**
 * Creates the submission, waits if asked to, prints it as text, JSON or its ID, then writes its bundle. If it is interrupted or
 * throws, prints how to continue. Sets exit code 1, with the error and the submission
 * printed, if it is not witnessed in time. Throws what the create, the download and `push` throw, and UsageError if the bundle
 * cannot be written.
 */
export async function submitOne(cli: Cli, one: OneSubmission, flags: PrintFlags): Promise<void> {
  let isDone = false;
  try {
    isDone = (await submit(cli, one, flags)) !== undefined && !one.signal.aborted;
  } finally {
    if (!isDone && one.howToContinue !== undefined) printError(cli, one.howToContinue);
  }
}

/** Returns the submission as printed, undefined if it was interrupted before the service had answered. */
async function submit(cli: Cli, one: OneSubmission, flags: PrintFlags): Promise<Submission | undefined> {
  const { signal, bundle, push } = one;
  const created = await callUntil(signal, (signal) => findOrCreate(one, signal));
  if (created === undefined) {
    printError(cli, 'interrupted: the service had not answered, so it may have recorded the submission');
    return undefined;
  }
  const landed = one.wait ? await waitFor(cli, created, one) : created;
  printOne(cli, landed, one, flags);
  if (bundle !== undefined && !signal.aborted && cli.exitCode === 0) {
    await writeBundle(cli, one, { id: landed.id, bundle });
  }
  if (one.wait && !signal.aborted && cli.exitCode === 0) await push?.(landed.id);
  return landed;
}

async function findOrCreate(one: OneSubmission, signal: AbortSignal): Promise<Submission> {
  const { client, sha256, statement = {}, metadata, validation, build, idempotencyKey } = one;
  const earlier = build && (await findEarlier(client, build, { artifactSha256: sha256, signal }));
  const found = earlier?.(sha256, metadata, statement.public);
  if (found !== undefined) return found;
  const stated = statedRequest(statement, one, one.otherFiles);
  const request = { ...stated, metadata, validation, ...(build && { build: build.id }) };
  return await client.attestations.create(request, { idempotencyKey, signal });
}

/** The submission once it is witnessed; as it was, with the error printed, if that fails or the signal aborts. */
async function waitFor(
  cli: Cli,
  created: Submission,
  { client, timeoutMs, signal }: OneSubmission,
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

async function writeBundle(
  cli: Cli,
  { client: { attestations }, isContinued, signal }: OneSubmission,
  { id, bundle }: { id: string; bundle: string },
): Promise<void> {
  if (isContinued && existsSync(bundle) && (await readBundleId(bundle)) !== id) {
    throw new UsageError(`${bundle} exists and is not the bundle of ${id}: --force overwrites it`);
  }
  const found = await callUntil(signal, (signal) =>
    attestations.downloadBundle({ id, format: 'bundle.json' }, { signal }),
  );
  if (found === undefined) return;
  await writeOutput(bundle, found.data);
  printError(cli, `wrote ${bundle}, ${found.data.length} bytes`);
}

const writeSubmission = compileWriter(SubmissionSchema);

/** Prints a submission as a line of text, of JSON, or its ID; its warnings to standard error. */
function printOne(
  cli: Cli,
  submission: Submission,
  { label, json: members }: OneSubmission,
  { json, quiet }: PrintFlags,
): void {
  for (const { message } of submission.warnings) printError(cli, `warning: ${printable(message)}`);
  if (json) {
    const head = JSON.stringify({ file: label, ...members });
    print(cli, `${head.slice(0, -1)},"submission":${writeSubmission(submission)}}`);
  } else if (quiet) print(cli, submission.id);
  else {
    const status = enumName(SubmissionStatusSchema, submission.status);
    print(cli, `${submission.id}  ${status}  ${printable(label)}`);
  }
}
