/**
 * Text forms of bytes. Decoding is strict: a byte string has exactly one encoding, so a changed character is
 * a changed value and nothing can hide in padding bits.
 */
import { FormatError } from './format-error.js';
import { decodeBase64, decodeHex, encodeBase64, encodeHex, encodeUtf8 } from './primitives.js';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** UTF-8 bytes of a text; a lone surrogate becomes U+FFFD. */
export const utf8 = encodeUtf8;

/** Text of UTF-8 bytes; throws FormatError when they are not valid UTF-8. A byte order mark is kept. */
export function fromUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new FormatError('not valid UTF-8');
  }
}

/** Lower-case hex. */
export const toHex = encodeHex;

/** Bytes of lower-case hex; throws FormatError on anything else, or when there are not `length` bytes. */
export function fromHex(text: string, length?: number): Uint8Array {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/.test(text)) throw new FormatError('not lower-case hex');
  return ofLength(decodeHex(text), length);
}

/** Standard base64 with padding (RFC 4648, section 4). */
export const toBase64 = encodeBase64;

/** Bytes of canonical standard base64; throws FormatError on anything else, or when there are not `length` bytes. */
export function fromBase64(text: string, length?: number): Uint8Array {
  const bytes = decodeBase64(text);
  if (encodeBase64(bytes) !== text) throw new FormatError('not canonical base64');
  return ofLength(bytes, length);
}

/** One byte string out of several. */
export function concatBytes(...parts: Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

/** Compares byte strings by their first different byte; a prefix comes first. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const difference = a[i]! - b[i]!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function ofLength(bytes: Uint8Array, length: number | undefined): Uint8Array {
  if (length !== undefined && bytes.length !== length) {
    throw new FormatError(`${bytes.length} bytes where ${length} belong`);
  }
  return bytes;
}
