/** Sets for tests, and their root computed a second way: by the recursion of RFC 6962, over what JSON.parse reads. */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { createSet } from '../../../src/proof/set/create-set.js';
import type { SetEntry } from '../../../src/proof/set/entry.js';
import type { NotBefore } from '../../../src/proof/set/head.js';
import { readSet, type SetSummary } from '../../../src/proof/set/read-set.js';
import { SetError } from '../../../src/proof/set/set-error.js';

const sha256 = (...parts: (string | Uint8Array)[]) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

export const NOT_BEFORE: NotBefore = {
  origin: 'live.log.example',
  rootHash: 'ab'.repeat(32),
  treeSize: 8421,
};

/** The content of a file, which is its path: so that a test has the bytes of each entry. */
export const contentOf = (path: string) => new Uint8Array(Buffer.from(`content of ${path}`));

export function entryOf(path: string): SetEntry {
  const content = contentOf(path);
  return {
    bytes: content.length,
    path,
    salt: sha256('salt', path).toString('hex').slice(0, 32),
    sha256: sha256(content).toString('hex'),
  };
}

/** Sorts paths as the format has it, by their bytes. */
export function sorted(paths: readonly string[]): string[] {
  return [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** The text of the set of files with these paths, in any order. */
export function textOf(paths: readonly string[], notBefore?: NotBefore): string {
  const set = createSet();
  const lines = sorted(paths).map((path) => set.add(entryOf(path)));
  return lines.join('') + set.end(notBefore).text;
}

/** Cuts a text into pieces of so many bytes. */
export function* piecesOf(text: string | Uint8Array, length = 1000): Generator<Uint8Array> {
  const bytes = new Uint8Array(Buffer.from(text));
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

export const readText = (text: string | Uint8Array): Promise<SetSummary> => readSet(piecesOf(text)).finish();

/** The error of a promise that rejects with a SetError. Throws if it does not. */
export async function errorOf(promise: Promise<unknown>): Promise<SetError> {
  const error = await promise.then(
    () => new Error('it did not fail'),
    (reason) => reason,
  );
  if (!(error instanceof SetError)) throw error;
  return error;
}

/** The error of a function that throws a SetError. Throws if it does not. */
export function thrownBy(call: () => unknown): Promise<SetError> {
  return errorOf((async () => call())());
}

/** Root and digest of a set file, from what JSON.parse reads of it. */
export function recompute(text: string): { root: string; headSha256: string } {
  const { head, entries } = JSON.parse(text);
  const leaves = entries.map((entry: { leaf?: string }) =>
    entry.leaf === undefined
      ? sha256(Uint8Array.of(0), canonicalize(entry)!)
      : Buffer.from(entry.leaf, 'hex'),
  );
  return { root: rootOf(leaves).toString('hex'), headSha256: sha256(canonicalize(head)!).toString('hex') };
}

/** MTH of RFC 6962, section 2.1. */
function rootOf(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0]!;
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha256(Uint8Array.of(1), rootOf(leaves.slice(0, k)), rootOf(leaves.slice(k)));
}

const segment = fc
  .oneof(
    fc.constantFrom('a', 'b', '...', '.x', 'a.b', ' ', 'é', '\u{1f600}', '\uffee', '\n', '"', '__proto__'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }),
  )
  .filter((text) => !/[/\\\0]/.test(text) && text !== '.' && text !== '..');

/** Good paths: characters of all lengths in UTF-8, and names that JSON escapes. */
export const pathArbitrary = fc
  .array(segment, { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join('/'));

/** 1 to `max` paths, each once. */
export const pathsArbitrary = (max: number) =>
  fc.uniqueArray(pathArbitrary, { minLength: 1, maxLength: max, size: 'max' });
