/** The build that submissions are of, by which a run that was interrupted goes on. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { type Cli, UsageError } from '../cli.js';
import { shellWord } from '../output/shell-word.js';

/** Flags that name a build. */
export type BuildFlags = { readonly build?: string; readonly resume?: string };

/** A build; its ID was given, or made for this run. */
export type Build = {
  readonly id: string;
  readonly isGiven: boolean;
  /** Of another command: the folders whose files `attest submit --each` continues with. */
  readonly folders?: readonly string[];
};

/** Help text about builds. */
export const BUILD_HELP = `
--build names the build that the submissions are of, such as a CI run; \`attest list --build\` and \`attest bundle --build\` find
them. The same command continues a run that ended early: it lists what the build has, prints the same IDs and makes no second
submission. A file whose content has changed is a new submission; other metadata needs another build. Each idempotency key is the SHA-256, in hex, of
the JSON array ["attest submit", build, path, sha256] without spaces. Without --build each run has an ID of its own, which it
prints if it ends early; --resume with it is the same as --build. Set file and bundles of the same build may be there.`;

/** As the service has it. */
const ID = /^[^\s\p{Cc}]\P{Cc}{0,127}$/u;

/** The build by the flags; with `makeId`'s ID by default. Throws UsageError if both name one, or it is malformed. */
export function readBuild({ build, resume }: BuildFlags, makeId: () => string): Build {
  if (build !== undefined && resume !== undefined) {
    throw new UsageError('--build and --resume both name the build: give one');
  }
  const given = build ?? resume;
  if (given === undefined) return { id: makeId(), isGiven: false };
  assertBuildId(build === undefined ? '--resume' : '--build', given);
  return { id: given, isGiven: true };
}

/** Throws UsageError if the value of a flag is no build's ID, such as the empty one of a variable that is not set. */
export function assertBuildId(flag: string, id: string): void {
  if (ID.test(id)) return;
  throw new UsageError(
    `${flag} is not 1 to 128 characters without control characters, the first of which is no space`,
  );
}

/** The idempotency key of a build's file. */
export function submissionKey({ id }: Build, { name, sha256 }: { name: string; sha256: string }): string {
  const parts = JSON.stringify(['attest submit', id, name, sha256]);
  return createHash('sha256').update(parts).digest('hex');
}

/** The line that says how to continue the build, as with the arguments of this run. */
export function continuation({ self }: Cli, { id, isGiven, folders }: Build): string {
  const what = folders === undefined ? '…' : `${folders.map(shellWord).join(' ')} --each`;
  return `to continue: ${self} submit ${what} ${isGiven ? '--build' : '--resume'} ${shellWord(id)}`;
}

/** The line that submits the artifact of a run by its digest, with the metadata that only that run can make. */
export function laterSubmission(
  { self }: Cli,
  { id }: Build,
  { sha256, metadata }: { sha256: string; metadata: JsonObject },
): string {
  // Names of tests are printed: as ASCII they cannot move a cursor.
  const json = JSON.stringify(metadata).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `to submit it later: ${self} submit sha256:${sha256} --metadata ${shellWord(json)} --resume ${shellWord(id)}`;
}
