/** Entries of a set: what a file is, and the leaf that stands for it in the tree. */
import { fromHex, utf8 } from '../bytes/encoding.js';
import { HASH_BYTES, leafHash } from '../log/merkle.js';
import { findPathProblem, printablePath } from './path.js';
import { SetError } from './set-error.js';

/** Maximum number of entries of a set. */
export const MAX_ENTRIES = 1_000_000;

/** Length of the random salt, without which a withheld entry could be guessed from its leaf; in bytes. */
const SALT_BYTES = 16;

/** A file in a set. */
export type SetEntry = {
  /** The file's length. */
  readonly bytes: number;
  /** Relative, segments joined by `/`; at most 4,096 bytes of UTF-8. */
  readonly path: string;
  /** 16 random bytes in lower-case hex, new for each entry. */
  readonly salt: string;
  /** SHA-256 of the file in lower-case hex. */
  readonly sha256: string;
};

const MEMBERS = ['bytes', 'path', 'salt', 'sha256'];

/** The entry's canonical JSON (RFC 8785): JSON.stringify encodes a well-formed string as that does. */
export function entryText({ bytes, path, salt, sha256 }: SetEntry): string {
  return `{"bytes":${bytes},"path":${JSON.stringify(path)},"salt":"${salt}","sha256":"${sha256}"}`;
}

/** The entry's leaf: SHA-256(0x00 ‖ canonical JSON), 32 bytes. */
export function entryLeaf(entry: SetEntry): Uint8Array {
  return leafHash(utf8(entryText(entry)));
}

/**
 * Reads an entry from parsed JSON. Throws SetError if a member is missing or wrong. `isKnown`: whether it has no further
 * members, whose meaning, and leaf, another version knows.
 */
export function readEntry(json: object): { entry: SetEntry; isKnown: boolean } {
  const { bytes, path, salt, sha256 } = json as Readonly<Record<string, unknown>>;
  if (typeof path !== 'string') throw new SetError('set.shape', 'has no path');
  const pathProblem = findPathProblem(path);
  if (pathProblem !== undefined) {
    throw new SetError('set.shape', `has the path ${printablePath(path)}, which ${pathProblem}`, { path });
  }
  const problem = findMemberProblem(bytes, salt, sha256);
  if (problem !== undefined) throw new SetError('set.shape', `(${printablePath(path)}) ${problem}`, { path });
  const entry = { bytes, path, salt, sha256 } as SetEntry;
  return { entry, isKnown: Object.keys(json).every((name) => MEMBERS.includes(name)) };
}

/** Checks an entry that is to be written. Throws SetError like {@link readEntry}. */
export function checkEntry(entry: SetEntry): void {
  readEntry(entry);
}

function findMemberProblem(bytes: unknown, salt: unknown, sha256: unknown): string | undefined {
  if (!Number.isSafeInteger(bytes) || Number(bytes) < 0) return 'has no length in bytes below 2^53';
  if (!isHex(salt, SALT_BYTES)) return 'has no salt of 16 bytes in lower-case hex';
  if (!isHex(sha256, HASH_BYTES)) return 'has no SHA-256 in lower-case hex';
  return undefined;
}

const HEX = /^[0-9a-f]*$/;

function isHex(value: unknown, length: number): value is string {
  return typeof value === 'string' && value.length === 2 * length && HEX.test(value);
}

/** The text of an entry that is withheld: its leaf alone. */
export function withheldText(leafHex: string): string {
  return `{"leaf":"${leafHex}"}`;
}

/** Reads the leaf of an entry that is withheld. Throws SetError if it is not 32 bytes in lower-case hex. */
export function readWithheld(leaf: unknown): Uint8Array {
  if (!isHex(leaf, HASH_BYTES)) throw new SetError('set.shape', 'has a leaf that is not 32 bytes in hex');
  return fromHex(leaf, HASH_BYTES);
}
