import { fromUtf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';

/** Each string of a valid JSON text. */
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * The value of a JSON text, or of its UTF-8 bytes, that is at most `maxLength` long. No member may be there twice: of
 * two readers one could take the first and one the last. Throws FormatError, which says what is wrong.
 */
export function parseJsonText(input: string | Uint8Array, maxLength: number): unknown {
  if (input.length > maxLength) throw new FormatError(`is longer than ${maxLength / 1024 / 1024} MiB`);
  const text = typeof input === 'string' ? input : textOf(input);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FormatError(text.trim() === '' ? 'is empty' : 'is not JSON, or is cut off');
  }
  const written = text.replaceAll(STRINGS, '').split(':').length - 1;
  if (written !== countMembers(value)) throw new FormatError('has a member twice');
  return value;
}

function textOf(bytes: Uint8Array): string {
  try {
    return fromUtf8(bytes);
  } catch {
    throw new FormatError('is not text in UTF-8');
  }
}

/** How many members all objects of a value have together. */
function countMembers(root: unknown): number {
  let count = 0;
  for (const open = [root]; open.length > 0; ) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const items = Object.values(value);
    if (!Array.isArray(value)) count += items.length;
    for (const item of items) open.push(item);
  }
  return count;
}
