import { FormatError } from '../../../proof/bytes/format-error.js';
import { parseJsonText } from '../../../proof/verify/read/json-text.js';
import { MAX_BUNDLE_CHARACTERS } from '../../../proof/verify/read/read-bundle.js';
import { printable } from '../../../protocol/printable.js';
import { bytesText } from './bytes-text.js';

/** The file that is asked about; `size` in bytes, if the file itself was given. */
export type Artifact = { readonly name: string; readonly sha256: string; readonly size?: number };

/** A proof bundle as it was given; it may be anything. */
export type GivenBundle = { readonly name: string; readonly bytes: Uint8Array };

/** What was dropped, by what it is. */
type DroppedFiles = { readonly artifact?: File; readonly bundle?: File };

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

/**
 * Tells which of the dropped files is the bundle. Throws FormatError if there are more than two, or two of the same
 * kind.
 */
export async function sortDropped(files: readonly File[]): Promise<DroppedFiles> {
  if (files.length > 2) {
    throw new FormatError(`${files.length} files were dropped. Drop one file and its proof bundle.`);
  }
  const [first, second] = files;
  if (first === undefined) throw new FormatError('Nothing was dropped that is a file.');
  const isFirstBundle = await isLikeBundle(first);
  if (second === undefined) return isFirstBundle ? { bundle: first } : { artifact: first };
  if (isFirstBundle === (await isLikeBundle(second))) {
    throw new FormatError(
      isFirstBundle
        ? 'Both files look like proof bundles. Give each in its own place.'
        : 'Neither file looks like a proof bundle. Give each in its own place.',
    );
  }
  return isFirstBundle ? { bundle: first, artifact: second } : { bundle: second, artifact: first };
}

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
