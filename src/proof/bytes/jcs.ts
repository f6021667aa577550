/**
 * The JSON Canonicalization Scheme (RFC 8785): one text per value, so that it can be hashed. Recursive: bound the depth
 * of untrusted values first.
 */
import canonicalize from 'canonicalize';
import { utf8 } from './encoding.js';
import { FormatError } from './format-error.js';

const LONE_SURROGATE = /\p{Surrogate}/u;

/** UTF-8 bytes of {@link jcs}, to hash or sign. */
export function jcsBytes(value: unknown): Uint8Array {
  return utf8(jcs(value));
}

/**
 * Canonical text of an untrusted value. Throws FormatError for values that JSON cannot represent (NaN, lone surrogates,
 * cycles).
 */
export function jcs(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalJson(value);
  } catch (error) {
    throw new FormatError(`not canonical JSON: ${error instanceof Error ? error.message : 'unknown'}`);
  }
  if (text === undefined) throw new FormatError('not a JSON value');
  return text;
}

/**
 * Canonical text of a value that is known to be JSON. Returns undefined if it is not a JSON value; throws the library's
 * errors for values that JSON cannot represent.
 *
 * If all members are in canonical order already, JSON.stringify writes them: its strings and numbers are the canonical
 * ones. A proof bundle takes 8 µs this way, and 31 µs through the library.
 */
export function canonicalJson(value: unknown): string | undefined {
  return isInOrder(value) ? JSON.stringify(value) : canonicalize(value);
}

function isInOrder(value: unknown): boolean {
  switch (typeof value) {
    case 'string':
      return isWellFormed(value);
    case 'number':
      return Number.isFinite(value);
    case 'boolean':
      return true;
    case 'object':
      return value === null || (Array.isArray(value) ? value.every(isInOrder) : hasMembersInOrder(value));
    default:
      return false;
  }
}

/** Plain objects only: `toJSON` would replace others. */
function hasMembersInOrder(value: object): boolean {
  if (Object.getPrototypeOf(value) !== Object.prototype || 'toJSON' in value) return false;
  let previous = '';
  let first = true;
  for (const [name, member] of Object.entries(value)) {
    if ((!first && name <= previous) || !isWellFormed(name) || !isInOrder(member)) return false;
    previous = name;
    first = false;
  }
  return true;
}

function isWellFormed(text: string): boolean {
  return !LONE_SURROGATE.test(text);
}
