import { withoutByteOrderMark } from '../../../protocol/byte-order-mark.js';
import { countMembers } from '../../../protocol/count-members.js';
import { fromUtf8 } from '../../bytes/encoding.js';
import { FormatError } from '../../bytes/format-error.js';

const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** A text that is not one JSON document. */
export class UnreadableTextError extends FormatError {}

/**
 * Parses a JSON text, or its UTF-8 bytes, of at most `maxLength` characters or bytes. Ignores a byte order mark at its
 * start. Rejects duplicate members, of which another reader might take the other one. Throws FormatError, which is an
 * UnreadableTextError unless it is about these.
 */
export function parseJsonText(input: string | Uint8Array, maxLength: number): unknown {
  if (input.length > maxLength)
    throw new UnreadableTextError(`is longer than ${maxLength / 1024 / 1024} MiB`);
  const text = withoutByteOrderMark(typeof input === 'string' ? input : textOf(input));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UnreadableTextError(text.trim() === '' ? 'is empty' : 'is not JSON, or is cut off');
  }
  if (countColons(text) !== countMembers(value)) throw new FormatError('has a member twice');
  return value;
}

function textOf(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes);
  } catch {
    throw new UnreadableTextError('is not text in UTF-8');
  }
}

/** Number of colons outside the strings of a valid JSON text: one for each member as written. */
function countColons(json: string): number {
  let count = 0;
  for (let at = 0; at < json.length; ) {
    const quote = json.indexOf('"', at);
    const end = quote === -1 ? json.length : quote;
    for (; at < end; at++) if (json.charCodeAt(at) === COLON) count++;
    at = quote === -1 ? end : endOfString(json, quote);
  }
  return count;
}

/** The index after the string whose opening quote is at `start`. */
function endOfString(json: string, start: number): number {
  let quote = json.indexOf('"', start + 1);
  while (isEscaped(json, quote)) quote = json.indexOf('"', quote + 1);
  return quote + 1;
}

function isEscaped(json: string, at: number): boolean {
  let backslashes = 0;
  while (json.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++;
  return backslashes % 2 === 1;
}
