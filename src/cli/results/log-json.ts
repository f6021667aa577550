/** Parses what a log has beside its samples. */
import { isUtf8 } from 'node:buffer';
import { isExactLiteral } from '../../protocol/inexact-integers.js';
import { UsageError } from '../cli.js';

/** Members of an object that nothing is known of; those of what is no object are none. */
export type Fields = Readonly<Record<string, unknown>>;

const MAX_BYTES = 16 * 1024 * 1024;

/** Python writes numbers that JSON does not have. */
const TOKEN = /"|-?(?:\d[\d.eE+-]*|Infinity)|NaN/g;

/**
 * Parses a text of at most 16 MiB that Python or JavaScript wrote. Integers that a double cannot hold become strings of their
 * digits, and NaN and Infinity of their names. `what` names it in errors. Throws UsageError.
 */
export function parseLogJson(bytes: Uint8Array, what: string): unknown {
  if (bytes.length > MAX_BYTES) throw new UsageError(`${what} is larger than ${MAX_BYTES / 1024 ** 2} MiB`);
  if (!isUtf8(bytes)) throw new UsageError(`${what} is not UTF-8`);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  try {
    return JSON.parse(quoteNumbers(text));
  } catch {
    throw new UsageError(`${what} is not JSON`);
  }
}

function quoteNumbers(text: string): string {
  const pieces: string[] = [];
  let copied = 0;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    const [token] = match;
    if (token === '"') TOKEN.lastIndex = endOfString(text, match.index);
    else if (!/\d/.test(token) || !isExactLiteral(token)) {
      pieces.push(text.slice(copied, match.index), `"${token}"`);
      copied = match.index + token.length;
    }
  }
  return pieces.join('') + text.slice(copied);
}

function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text[before] === '\\') before--;
    if ((at - before) % 2 === 1) return at + 1;
  }
  return text.length;
}

/** The members of a value. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

/** The items of a value; those of what is no array are none. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A text that metadata may have, at most 1,000 characters of it; undefined of what is none or empty. */
export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return value
    .slice(0, 1000)
    .replaceAll('\0', '\ufffd')
    .replace(/\p{Surrogate}/gu, '\ufffd');
}

/** A count; undefined of what is none. */
export function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
}

/** A text, or a number as a text. */
export function labelOf(value: unknown): string | number | undefined {
  return typeof value === 'number' ? value : textOf(value);
}

/** The time of an RFC 3339 text or a number of milliseconds; undefined of what is none. */
export function timeOf(value: unknown): string | undefined {
  if (typeof value === 'number') return Math.abs(value) < 8.64e15 ? new Date(value).toISOString() : undefined;
  const isTime =
    typeof value === 'string' &&
    /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(value);
  return isTime && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

/** The number of a metric, or its text if JSON has no such number; undefined of what is none. */
export function metricNumberOf(value: unknown): number | string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  return typeof value === 'string' && /^(?:NaN|-?Infinity|-?\d+)$/.test(value) ? value : undefined;
}

/** Those of these members whose names match and whose values are numbers, truth values or short texts. */
export function scalarsOf(
  fields: Fields,
  name: RegExp,
): Record<string, number | string | boolean> | undefined {
  const found: Record<string, number | string | boolean> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (!name.test(key)) continue;
    const isPlain = typeof value === 'boolean' || Number.isFinite(value);
    const kept = isPlain ? (value as number | boolean) : textOf(value);
    if (kept !== undefined) found[key] = kept;
  }
  return Object.keys(found).length === 0 ? undefined : found;
}

/** The members that are texts; undefined if there are none. */
export function textsOf(fields: Fields): Record<string, string> | undefined {
  const texts = Object.entries(fields).flatMap(([name, value]) => {
    const text = textOf(value);
    return text === undefined ? [] : [[name, text] as const];
  });
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

/** The object without members that are undefined. */
export function given<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
