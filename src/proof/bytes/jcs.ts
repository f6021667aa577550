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
 * Plain values are written here: small metadata takes 0.4 µs, through the library 1.5, and a proof bundle 8 µs in place of
 * 27. All others go through the library.
 */
export function canonicalJson(value: unknown): string | undefined {
  return plainText(value) ?? canonicalize(value);
}

/** Undefined of a value that has, or is, anything but plain objects, arrays, well-formed text, and finite numbers. */
function plainText(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return quoted(value);
    case 'number':
      return Number.isFinite(value) ? String(value) : undefined;
    case 'boolean':
      return String(value);
    case 'object':
      if (value === null) return 'null';
      return Array.isArray(value) ? arrayText(value) : objectText(value as Record<string, unknown>);
    default:
      return undefined;
  }
}

function arrayText(values: readonly unknown[]): string | undefined {
  let items = '';
  for (const value of values) {
    const text = plainText(value);
    if (text === undefined) return undefined;
    items += items === '' ? text : `,${text}`;
  }
  return `[${items}]`;
}

/** Plain objects only: `toJSON` would replace others. */
function objectText(value: Record<string, unknown>): string | undefined {
  if (Object.getPrototypeOf(value) !== Object.prototype || 'toJSON' in value) return undefined;
  let members = '';
  // Sorted by UTF-16 code units (RFC 8785, section 3.2.3).
  for (const name of Object.keys(value).sort()) {
    const key = quoted(name);
    const text = plainText(value[name]);
    if (key === undefined || text === undefined) return undefined;
    members += members === '' ? `${key}:${text}` : `,${key}:${text}`;
  }
  return `{${members}}`;
}

/** Characters of ASCII that JSON does not escape. */
const UNESCAPED = /^[ !#-[\]-~]*$/;

function quoted(text: string): string | undefined {
  if (UNESCAPED.test(text)) return `"${text}"`;
  return LONE_SURROGATE.test(text) ? undefined : JSON.stringify(text);
}
