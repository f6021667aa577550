/**
 * Integers in a JSON text that a double cannot represent exactly. JSON.parse rounds them silently, so two different
 * texts would have the same value and the same canonical form (RFC 8785).
 */

import { jsonPointer } from './json-pointer.js';

/** The message for such a number. */
export const INEXACT_INTEGER = 'is an integer that JSON numbers do not hold exactly: send it as a string';

const MAX_FOUND = 100;

/** A double represents any number of so many digits. */
export const EXACT_DIGITS = 15;

/** A longer number, its point counted as a digit. Digits at the start of a string follow a quote. */
const LONG_NUMBER = /(?:^|[\s:,[-])\d[\d.]{15}/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]|-?\d[\d.eE+-]*/g;

/**
 * Returns JSON pointers to the integers in a valid JSON text that a double cannot represent exactly, at most a hundred.
 * `5.0` and `1e3` are integers too. Other numbers count as approximate, and those out of a double's range are skipped.
 */
export function findInexactIntegers(json: string): string[] {
  if (!LONG_NUMBER.test(json)) return [];
  const found: string[] = [];
  const open: Place[] = [];
  for (const [token] of json.matchAll(TOKEN)) {
    const place = open.at(-1);
    if (token === '{') open.push({ step: undefined });
    else if (token === '[') open.push({ step: 0 });
    else if (token === '}' || token === ']') open.pop();
    else if (token === ',') next(place);
    else if (token.startsWith('"')) name(place, token);
    else if (!isExactLiteral(token)) found.push(jsonPointer(open.map(({ step }) => step ?? '')));
    if (found.length === MAX_FOUND) break;
  }
  return found;
}

/** An open object or array: the current member or index; undefined before a member's name. */
type Place = { step: string | number | undefined };

function next(place: Place | undefined): void {
  if (place !== undefined) place.step = typeof place.step === 'number' ? place.step + 1 : undefined;
}

function name(place: Place | undefined, token: string): void {
  if (place !== undefined && place.step === undefined) place.step = JSON.parse(token);
}

/** Whether a double gives back a JSON number with every digit: any fraction, and one out of a double's range, counts. */
export function isExactLiteral(literal: string): boolean {
  const value = Number(literal);
  if (!Number.isFinite(value)) return true;
  const written = decimal(literal);
  const held = decimal(String(value));
  return written.exponent < 0 || (written.digits === held.digits && written.exponent === held.exponent);
}

/** Significant digits and the exponent of the last one; no digits for 0. */
function decimal(literal: string): { digits: string; exponent: number } {
  const [mantissa = '', power = '0'] = literal.replace(/^-/, '').toLowerCase().split('e', 2);
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = whole + fraction;
  let start = 0;
  while (digits[start] === '0') start++;
  let end = digits.length;
  while (end > start && digits[end - 1] === '0') end--;
  if (start === end) return { digits: '', exponent: 0 };
  const exponent = Number(power) - fraction.length + digits.length - end;
  return { digits: digits.slice(start, end), exponent };
}
