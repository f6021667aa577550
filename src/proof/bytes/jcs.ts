import { canonicalJson } from './canonical-json.js';
import { utf8 } from './encoding.js';
import { FormatError } from './format-error.js';

/**
 * The JSON Canonicalization Scheme (RFC 8785) of a JSON value: one spelling per value, so that it can be hashed.
 * Throws FormatError on what JSON cannot hold (NaN, lone surrogates, cycles). Recursive: bound the depth of foreign values first.
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

/** UTF-8 bytes of {@link jcs}. */
export function jcsBytes(value: unknown): Uint8Array {
  return utf8(jcs(value));
}
