import { FormatError } from '../../../proof/bytes/format-error.js';
import { parseJsonText } from '../../../proof/verify/read/json-text.js';
import { MAX_BUNDLE_CHARACTERS } from '../../../proof/verify/read/read-bundle.js';
import { printable } from '../../../protocol/printable.js';
import type { FolderSource } from '../folder/list-folder.js';
import { bytesText } from './bytes-text.js';

/** The file that is asked about; `size` in bytes, if the file itself was given. */
export type Artifact = { readonly name: string; readonly sha256: string; readonly size?: number };

/** A proof bundle as it was given; it may be anything. */
export type GivenBundle = { readonly name: string; readonly bytes: Uint8Array };

/** A set file as it was given; it may be anything. */
export type GivenSet = { readonly name: string; readonly file: File };

/** What was dropped, by what it is. */
type DroppedFiles = {
  readonly artifact?: File | FolderSource;
  readonly bundle?: File;
  readonly set?: File;
};

type Kind = keyof DroppedFiles;

const SHA256 = /^(?:sha256:)?([0-9a-f]{64})$/i;

/** The name of a file, safe to show. */
export function nameOf(file: File): string {
  return printable(file.name).slice(0, 200);
}

/** Reads a bundle. Throws FormatError if it is too large to be one, or empty. */
export async function readBundleFile(file: File): Promise<GivenBundle> {
  const name = nameOf(file);
  if (file.size > MAX_BUNDLE_CHARACTERS) {
    const limit = bytesText(MAX_BUNDLE_CHARACTERS);
    throw new FormatError(
      `${name} has ${bytesText(file.size)}, and a proof bundle has at most ${limit}. If it is the file that was attested, give it as the file.`,
    );
  }
  if (file.size === 0) throw new FormatError(`${name} is empty.`);
  return { name, bytes: new Uint8Array(await file.arrayBuffer()) };
}

/** Tells what was dropped. Throws FormatError if there is more than one of a kind. */
export async function sortDropped(dropped: readonly (File | FolderSource)[]): Promise<DroppedFiles> {
  if (dropped.length === 0) throw new FormatError('Nothing was dropped that is a file or a folder.');
  if (dropped.length > MAX_DROPPED) {
    throw new FormatError(
      `${dropped.length} files were dropped. Drop one file, or the folder that has them, with its proof bundle and perhaps its set file.`,
    );
  }
  const sorted: Partial<Record<Kind, File | FolderSource>> = {};
  for (const one of dropped) {
    const kind = one instanceof File ? await findKind(one) : 'artifact';
    if (kind in sorted) throw new FormatError(TWICE[kind]);
    sorted[kind] = one;
  }
  return sorted as DroppedFiles;
}

const MAX_DROPPED = 3;

const TWICE: Readonly<Record<Kind, string>> = {
  artifact:
    'Two of what was dropped are neither a proof bundle nor a set file. Drop one file, or the folder that has them.',
  bundle: 'Two of the files look like proof bundles. Give each in its own place.',
  set: 'Two of the files are set files. Give one.',
};

/** Tells a set file by its first bytes and a bundle by its members; anything else is `artifact`. */
export async function findKind(file: File): Promise<Kind> {
  if (
    SET_BEGINS.test(
      await file
        .slice(0, SET_BEGIN_BYTES)
        .text()
        .catch(() => ''),
    )
  )
    return 'set';
  return (await isLikeBundle(file)) ? 'bundle' : 'artifact';
}

/** The head may be before the media type. */
const SET_BEGIN_BYTES = 4096;
const SET_BEGINS = /^\ufeff?\s*\{.*"application\/vnd\.attestation-service\.set\.v/s;

/** The digest in a text such as `sha256:9f86…`. Throws FormatError if it is none. */
export function parseDigest(text: string): string {
  const [, digest] = SHA256.exec(text.trim()) ?? [];
  if (digest === undefined) throw new FormatError('A SHA-256 has 64 hexadecimal digits, 0 to 9 and a to f.');
  return digest.toLowerCase();
}

async function isLikeBundle(file: File): Promise<boolean> {
  if (file.size > MAX_BUNDLE_CHARACTERS) return false;
  try {
    const json = parseJsonText(new Uint8Array(await file.arrayBuffer()), MAX_BUNDLE_CHARACTERS);
    const members = Object.keys(json ?? {});
    return members.some((name) => name === 'sigstore_bundle' || name === 'sigstoreBundle');
  } catch {
    return false;
  }
}
