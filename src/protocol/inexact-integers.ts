/**
 * Integers in a JSON text that a double does not give back. JSON.parse makes another number of them without a word, so
 * that two texts which say different things have the same value, and the same canonical form (RFC 8785).
 */

import { jsonPointer } from './json-pointer.js';

/** What is wrong with such a number, and what to do about it. */
export const INEXACT_INTEGER = 'is an integer that JSON numbers do not hold exactly: send it as a string';

const MAX_FOUND = 100;

/** A number of 16 characters or more, as 15 digits every double gives back. What begins a text is behind its quote. */
const LONG_NUMBER = /(?:^|[\s:,[-])\d[\d.]{15}/;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]|-?\d[\d.eE+-]*/g;

/**
 * JSON pointers to the integers in a valid JSON text that a double does not give back with every digit, at most a
 * hundred. An integer is what has an integer's value, `5.0` and `1e3` too. Other numbers are taken for approximate, as
 * all readers do, and those beyond the range of doubles are not looked at.
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
    else if (!isGivenBack(token)) found.push(jsonPointer(open.map(({ step }) => step ?? '')));
    if (found.length === MAX_FOUND) break;
  }
  return found;
}

/** An object or array that is open: the member or item that is being read; undefined before a member's name. */
type Place = { step: string | number | undefined };

function next(place: Place | undefined): void {
  if (place !== undefined) place.step = typeof place.step === 'number' ? place.step + 1 : undefined;
}

function name(place: Place | undefined, token: string): void {
  if (place !== undefined && place.step === undefined) place.step = JSON.parse(token);
}

function isGivenBack(literal: string): boolean {
  const value = Number(literal);
  if (!Number.isFinite(value)) return true;
  const written = decimal(literal);
  const held = decimal(String(value));
  return written.exponent < 0 || (written.digits === held.digits && written.exponent === held.exponent);
}

/** Significant digits, and the power of ten that the last of them stands for; of 0 no digits. */
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
