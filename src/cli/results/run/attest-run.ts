/** Attests what a command reported and wrote. */
import { basename } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { type Cli, printError } from '../../cli.js';
import type { FolderFlags } from '../../sets/folder-files.js';
import { findReports, foldersOf } from '../junit/find-reports.js';
import { inOrder, type ReadReports, readReports } from '../junit/read-junit.js';
import { makeTestResult, type RunDetails } from '../junit/test-result.js';
import type { Results } from '../results.js';
import { pathsIn } from '../set-paths.js';
import type { CommandEnd } from './run-command.js';
import {
  findWritten,
  hashWritten,
  noteFiles,
  type Snapshot,
  takeSnapshot,
  type WrittenFile,
} from './written-files.js';

/** What of a run is attested: reports, folders, and the flags that choose files in these. */
export type Watched = {
  readonly junit: readonly string[];
  readonly folders: readonly string[];
  readonly flags: FolderFlags;
};

/** Notes the state of reports and folders before the command runs. Throws as listing them does. */
export async function noteBefore({ junit, folders, flags }: Watched): Promise<Snapshot> {
  const reports = await noteFiles(await findReports(junit));
  return new Map([...(await takeSnapshot(folders, flags)), ...reports]);
}

/** What the command reported and wrote since. */
export type Written = { readonly read: ReadReports | undefined; readonly files: readonly WrittenFile[] };

/**
 * Reads the reports and hashes the files that are new or changed. A report that is as it was is of another run, and left out,
 * with a line on standard error. Throws UsageError, with file and line, if a report cannot be read; and as hashFiles does.
 */
export async function readWritten(
  cli: Cli,
  { junit, folders, flags }: Watched,
  { before, signal }: { before: Snapshot; signal: AbortSignal },
): Promise<Written> {
  const found = await findReports(junit);
  const reports = await findWritten(found, before);
  const stale = found.filter((file) => !reports.includes(file));
  for (const file of stale) printError(cli, `${file} was not written by the command, and is not attested`);
  const read = reports.length === 0 ? undefined : await readReports(cli, reports, signal);
  const files: WrittenFile[] = [];
  for (const folder of folders) {
    const omitted = [...found, ...files.map(({ file }) => file)];
    for await (const file of hashWritten(folder, before, { flags, omitted, signal })) files.push(file);
  }
  return { read, files };
}

/** The metadata of a run: of its tests, and of its command alone without a report. */
export function runMetadata({ read }: Written, details: RunDetails): JsonObject {
  return makeTestResult(read?.tally, details);
}

/**
 * Everything as one submission: a set, or the report itself if it is alone and no set is asked for. Undefined if nothing was
 * written.
 */
export function runResults(
  { read, files }: Written,
  { metadata, watched, asSet }: { metadata: JsonObject; watched: Watched; asSet: boolean },
): Results | undefined {
  const reports = read?.reports ?? [];
  const [first, ...others] = reports;
  if (first !== undefined && others.length === 0 && files.length === 0 && !asSet)
    return { name: first.file, metadata, artifact: { sha256: first.sha256 } };
  const pathOf = pathsIn([...watched.folders, ...foldersOf(watched.junit)]);
  const all = [...reports, ...files].map(({ file, bytes, sha256 }) => ({
    path: pathOf(file),
    bytes,
    sha256,
  }));
  return all.length === 0 ? undefined : { name: 'run', metadata, entries: inOrder(all) };
}

/** The command as metadata has it: its arguments may hold secrets, and are left out unless they are asked for. */
export function describeCommand(
  [program = '', ...args]: readonly string[],
  { exitCode, signal }: CommandEnd,
  withArguments = false,
): NonNullable<RunDetails['command']> {
  return {
    program: basename(program),
    ...(withArguments && { arguments: args }),
    exitCode,
    ...(signal !== undefined && { signal }),
  };
}
