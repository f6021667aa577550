/** What `attest submit` submits: files, those of folders and lists, digests, and standard input. */
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { MAX_ENTRIES } from '../../proof/set/entry.js';
import { type Cli, UsageError } from '../cli.js';
import { parseDigestArgument } from '../input/artifact.js';
import { inputFileSize } from '../input/input-file.js';
import type { ImageReference } from '../oci/reference.js';
import { type FolderFlags, isFolder, listFolderFiles } from '../sets/folder-files.js';
import { type Checksum, parseChecksums } from './checksums.js';
import { readLinesOf, STDIN } from './lines.js';
import { recordedName, recordedNameIn } from './recorded-name.js';

/** Flags that name more inputs than the arguments do. */
export type InputFlags = FolderFlags & {
  readonly filesFrom?: string;
  readonly null?: boolean;
  readonly checksums?: string;
  readonly each?: boolean;
  /** Further inputs, behind the others. */
  readonly more?: readonly Input[];
  /** Its bundles are no inputs. */
  readonly bundles?: string;
};

/** Help text about inputs. */
export const INPUT_HELP = `
Besides files it takes sha256:<hex>, the digest of something that is not there; - for standard input; --files-from, a list of
files (- for standard input), one a line, or with --null each ended by a NUL (find -print0); and --checksums, the output of
sha256sum or shasum -a 256 (also with --tag), whose files need not be there. A file named - is ./-.`;

/** One thing to submit. `label` is printed; `name` is recorded. */
export type Input = {
  readonly label: string;
  readonly name: string;
  /** Of a file that is to be hashed; 0 of a pipe. */
  readonly bytes: number;
  /** Lower-case hex, if it is given. */
  readonly sha256?: string;
  /** The image that it is. */
  readonly image?: ImageReference;
  /** Makes the metadata of what has this hash; a package URL by default. */
  readonly describe?: (sha256: string, given: JsonObject | undefined) => JsonObject;
};

/**
 * Lists the inputs of arguments and flags, each folder as its files. Throws UsageError if a list is malformed, a file is
 * missing, standard input is named twice, or there is nothing; and what listFiles throws.
 */
export async function gatherInputs(cli: Cli, given: readonly string[], flags: InputFlags): Promise<Input[]> {
  const { filesFrom, checksums } = flags;
  if ([...given, filesFrom, checksums].filter((name) => name === STDIN).length > 1) {
    throw new UsageError('- is standard input, which can be read only once');
  }
  if (flags.null && filesFrom === undefined) throw new UsageError('--null needs --files-from');
  const cwd = process.cwd();
  const inputs: Input[] = [];
  for (const argument of given) {
    for (const input of await readArgument(argument, flags, cwd)) inputs.push(input);
  }
  for (const path of await readFileList(cli, flags)) {
    for (const input of await listInputs(path, flags, cwd)) inputs.push(input);
  }
  for (const { name, sha256 } of await readChecksums(cli, checksums)) {
    inputs.push({ label: name, name: recordedName(name, cwd), bytes: 0, sha256 });
  }
  inputs.push(...(flags.more ?? []));
  if (inputs.length === 0) throw new UsageError('there is nothing to submit: the folder or list is empty');
  if (inputs.length > MAX_ENTRIES) throw new UsageError(`there are more than ${MAX_ENTRIES} files to submit`);
  return inputs;
}

async function readArgument(argument: string, flags: InputFlags, cwd: string): Promise<Input[]> {
  const sha256 = parseDigestArgument(argument);
  if (sha256 !== undefined) return [{ label: argument, name: sha256, bytes: 0, sha256 }];
  if (argument === STDIN) return [{ label: STDIN, name: 'stdin', bytes: 0 }];
  return await listInputs(argument, flags, cwd);
}

/** The paths that --files-from names. */
async function readFileList(cli: Cli, { filesFrom, null: isNull }: InputFlags): Promise<string[]> {
  if (filesFrom === undefined) return [];
  const end = isNull ? 'NUL' : 'newline';
  const lines = await readLinesOf(cli, filesFrom, { flag: '--files-from', end });
  return lines.map(({ text }) => (text === STDIN ? './-' : text));
}

async function readChecksums(cli: Cli, file: string | undefined): Promise<Checksum[]> {
  if (file === undefined) return [];
  return parseChecksums(file, await readLinesOf(cli, file, { flag: '--checksums', end: 'newline' }));
}

/** A file, or those of a folder, which keep the folder's name. */
async function listInputs(path: string, flags: InputFlags, cwd: string): Promise<Input[]> {
  if (!isFolder(path))
    return [{ label: path, name: recordedName(path, cwd), bytes: await inputFileSize(path) }];
  if (!flags.each) {
    throw new UsageError(
      `${path} is a directory: submit it alone, as one set, or with --each, which submits every file by itself`,
    );
  }
  const inputs: Input[] = [];
  for (const inner of await listFolderFiles(path, flags)) {
    const label = join(path, inner);
    inputs.push({ label, name: recordedNameIn(path, inner, cwd), bytes: await inputFileSize(label) });
  }
  return inputs;
}
