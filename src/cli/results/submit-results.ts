/** Submits what a reader made of results. */
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { ValidationMode } from '../../../gen/attestation/v1/attestations_pb.js';
import type { Client } from '../../client/client.js';
import type { PresentFile } from '../../proof/set/compare-files.js';
import { headJson } from '../../proof/set/head.js';
import { countFiles } from '../../proof/set/verify-set.js';
import { type Cli, printError, UsageError } from '../cli.js';
import { formatSize } from '../output/progress.js';
import { assertNew } from '../output/write-output.js';
import { readEarlierSet } from '../sets/earlier-set.js';
import { writeSet } from '../sets/make-set.js';
import { type Build, submissionKey } from '../submit/build.js';
import { recordedName } from '../submit/recorded-name.js';
import { assertSubjects, type StatedFile, type StatementFlags } from '../submit/statement.js';
import { submitOne } from '../submit/submit-one.js';
import type { Results } from './results.js';

/** Flags of what is written and printed. */
export type ResultFlags = StatementFlags & {
  set?: string;
  bundle?: string;
  force?: boolean;
  wait?: boolean;
  quiet?: boolean;
  json?: boolean;
};

/** How it is submitted; `timeoutMs` limits the wait. */
export type ResultSubmission = {
  readonly client: Client;
  readonly build: Build;
  readonly timeoutMs: number;
  /** Called with the ID once it is witnessed. */
  readonly push?: ((id: string) => Promise<void>) | undefined;
  /** Makes the line that says how to submit an artifact with this SHA-256 after a failure, if there is a way. */
  readonly howToContinue: (sha256: string) => string | undefined;
  readonly signal: AbortSignal;
};

/** Throws UsageError if the flags do not go together, or a file that would be written is there, unless of the same build. */
export function assertOutputs(flags: ResultFlags, setFile: string | undefined, build: Build): void {
  const { bundle, wait } = flags;
  if (bundle !== undefined && !wait) throw new UsageError('--bundle needs --wait');
  if (bundle !== undefined && setFile !== undefined && resolve(bundle) === resolve(setFile))
    throw new UsageError('--set and --bundle are one file');
  if (build.isGiven) return;
  for (const path of [setFile, bundle]) if (path !== undefined) assertNew(path, flags);
}

/**
 * Submits results in one call; several files as the head of a set, whose file is written before, or taken again if it is of the
 * same build. Throws as assertOutputs, the reader of the entries and submitOne do.
 */
export async function submitResults(
  cli: Cli,
  results: Results,
  { flags, submission }: { flags: ResultFlags; submission: ResultSubmission },
): Promise<void> {
  const setFile = setFileOf(results, flags);
  const { build } = submission;
  assertOutputs(flags, setFile, build);
  const isContinued = build.isGiven && !flags.force;
  const { force } = flags;
  const attested = await attestedOf(cli, results, { file: setFile, isContinued, force });
  const { sha256, json, name = recordedName(results.name, process.cwd()) } = attested;
  const one = {
    ...submission,
    label: setFile ?? results.name,
    name,
    sha256,
    statement: flags,
    otherFiles: [...(attested.otherFiles ?? []), ...(results.otherFiles ?? [])],
    metadata: results.metadata,
    validation: ValidationMode.STRICT,
    idempotencyKey: submissionKey(build, { name, sha256 }),
    wait: flags.wait ?? false,
    bundle: flags.bundle,
    isContinued,
    howToContinue: submission.howToContinue(sha256),
    json,
  };
  await submitOne(cli, one, flags);
}

/** What is attested, and what the line of JSON has of it. */
type Attested = { sha256: string; name?: string; otherFiles?: readonly StatedFile[]; json?: object };

type SetOutput = { file: string | undefined; isContinued: boolean; force: boolean | undefined };

async function attestedOf(cli: Cli, results: Results, { file, ...output }: SetOutput): Promise<Attested> {
  if ('artifact' in results) return results.artifact;
  if (file === undefined) return await listSubjects(results.entries);
  return await writeEntries(cli, results.entries, { file, ...output });
}

/** The entries as the subjects of a public statement, the first as its artifact. */
async function listSubjects(entries: AsyncIterable<PresentFile>): Promise<Attested> {
  const files: StatedFile[] = [];
  for await (const { path, sha256 } of entries) files.push({ name: path, sha256 });
  assertSubjects(files);
  const [first, ...otherFiles] = files;
  if (first === undefined) throw new UsageError('there are no files to submit');
  return { ...first, otherFiles };
}

/** Writes a set. Returns what is attested of it, and its members of the line of JSON. */
async function writeEntries(
  cli: Cli,
  entries: AsyncIterable<PresentFile>,
  { file, isContinued, force }: SetOutput & { file: string },
): Promise<Attested> {
  const earlier = isContinued && existsSync(file) ? await readEarlierSet(file) : undefined;
  const {
    head,
    headSha256: sha256,
    bytes,
  } = await writeSet(file, entries, { notBefore: undefined, earlier, force });
  printError(cli, `wrote ${file}, a set of ${countFiles(head.entries)}, ${formatSize(bytes)}`);
  return { sha256, json: { set: { file, head: headJson(head), head_sha256: sha256, bytes } } };
}

/** `<name>.set.json` by default; undefined if they are one artifact, or subjects of a public statement. */
function setFileOf(results: Results, { set, public: isPublic }: ResultFlags): string | undefined {
  if ('artifact' in results) return undefined;
  return set ?? (isPublic ? undefined : `${basename(results.name)}.set.json`);
}
