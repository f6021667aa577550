/// <reference lib="es2024.string" />
import { isUtf8 } from 'node:buffer';
import type { JsonValue } from '@bufbuild/protobuf';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { countMembers } from '../../protocol/count-members.js';
import { EXACT_DIGITS, findInexactIntegers, INEXACT_INTEGER } from '../../protocol/inexact-integers.js';
import { jsonPointer } from '../../protocol/json-pointer.js';
import { ApiError } from '../core/errors.js';
import { invalidRequest, type Reading, report } from './problems.js';

/** Malformed JSON, or JSON that this parser rejects. The message quotes nothing of the text. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
const POINT = 0x2e;
const NINE = 0x39;
const SPACE = 0x20;

/**
 * Parses JSON (RFC 8259) in UTF-8 without a byte order mark. Checks before parsing that its depth is at most `maxDepth`
 * levels: a scalar has none, `{}` has one. `__proto__` is an ordinary member. Numbers beyond the range of doubles become
 * infinite. Throws JsonSyntaxError, and `request.invalid` that points at duplicate members and at integers that a double
 * cannot represent.
 */
export function parseJson(bytes: Uint8Array, { maxDepth }: { maxDepth: number }): JsonValue {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new JsonSyntaxError('a JSON text must not begin with a byte order mark');
  }
  const { isAscii, colons, hasLongNumber } = scan(bytes, maxDepth);
  if (!isAscii && !isUtf8(bytes)) throw new JsonSyntaxError('a JSON text must be in UTF-8');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(
    isAscii ? 'latin1' : 'utf8',
  );
  const value = parseText(text);
  if (countMembers(value) !== colons) throw refuse(findRepeatedMembers(text), REPEATED_MEMBER);
  const inexact = hasLongNumber ? findInexactIntegers(text) : [];
  if (inexact.length > 0) throw refuse(inexact, INEXACT_INTEGER);
  return value;
}

function refuse(paths: readonly string[], message: string): Error {
  return invalidRequest(paths.map((path) => ({ path, message })));
}

type Scanned = { isAscii: boolean; colons: number; hasLongNumber: boolean };

/**
 * Scans the bytes outside strings: throws if there are too many levels, and returns whether all bytes are ASCII, the
 * number of colons, one per member, and whether a number has more digits than a double represents in any case. In UTF-8
 * these bytes are never part of another character.
 */
function scan(bytes: Uint8Array, maxDepth: number): Scanned {
  let colons = 0;
  let depth = 0;
  let seen = 0;
  let digits = 0;
  let mostDigits = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    seen |= byte;
    digits = digitsUpTo(byte, digits);
    mostDigits = Math.max(mostDigits, digits);
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) {
        seen |= bytes[at] as number;
        if (bytes[at] === BACKSLASH) at++;
      }
      // Setting bit 5 makes { of [ and } of ].
    } else if ((byte | 0x20) === 0x7b) {
      if (++depth > maxDepth) throw new JsonSyntaxError(`the JSON text is more than ${maxDepth} levels deep`);
    } else if ((byte | 0x20) === 0x7d) depth--;
    else if (byte === COLON) colons++;
  }
  return { isAscii: seen < 0x80, colons, hasLongNumber: mostDigits > EXACT_DIGITS };
}

/** How many digits and points in a row end with a byte; `before`: with the byte before it. */
function digitsUpTo(byte: number, before: number): number {
  return byte >= POINT && byte <= NINE ? before + 1 : 0;
}

// V8's message is used only if it does not quote the text: messages may be logged, bodies must not.
const QUOTED_TEXT = /, (?:\.\.\.)?".*" is not valid JSON$/s;

function parseText(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new JsonSyntaxError((error as Error).message.replace(QUOTED_TEXT, ''));
  }
}

/** Whether a value has more than `depth` levels: a scalar has none, `{}` has one. Stops at that depth. */
export function isDeeperThan(value: JsonValue, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (depth === 0) return true;
  const items = Array.isArray(value) ? value : Object.values(value);
  return items.some((item) => isDeeperThan(item, depth - 1));
}

/** Problem of text that PostgreSQL (U+0000) or canonical JSON (RFC 8785: lone surrogates) rejects. */
export const FORBIDDEN_TEXT = 'must not hold U+0000 or a lone surrogate';

/** Whether a text has U+0000, which PostgreSQL does not store, or a lone surrogate, which has no UTF-8. */
export function isForbiddenText(text: string): boolean {
  return text.includes('\0') || !text.isWellFormed();
}

/** Reports every text and number in a value that canonical JSON or the database cannot represent. */
export function checkFreeForm(json: JsonValue, reading: Reading): void {
  if (typeof json === 'string') checkText(json, reading);
  // JSON.parse makes Infinity of 1e999.
  else if (typeof json === 'number' && !Number.isFinite(json)) report(reading, 'is out of range');
  else if (Array.isArray(json)) {
    for (let index = 0; index < json.length; index++) checkAt(index, json[index] as JsonValue, reading);
  } else if (typeof json === 'object' && json !== null) {
    for (const name of Object.keys(json)) checkAt(name, json[name] as JsonValue, reading);
  }
}

function checkAt(step: string | number, json: JsonValue, reading: Reading): void {
  reading.path.push(step);
  if (typeof step === 'string') checkText(step, reading);
  checkFreeForm(json, reading);
  reading.path.pop();
}

/** Reports a text that cannot be stored. */
export function checkText(text: string, reading: Reading): void {
  if (isForbiddenText(text)) report(reading, FORBIDDEN_TEXT);
}

/** The problem of a repeated member. */
const REPEATED_MEMBER = 'occurs twice';

const MAX_FOUND = 100;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]/g;

/** An open object or array: the current member or index, and the names of the object's members so far. */
type Place = { step: string | number; names: Set<string> | undefined; wantsName: boolean };

/** JSON pointers to the repeated members of a valid JSON text, at most a hundred. */
function findRepeatedMembers(json: string): string[] {
  const found = new Set<string>();
  const open: Place[] = [];
  for (const [token] of json.matchAll(TOKEN)) {
    const place = open.at(-1);
    if (token === '{') open.push({ step: '', names: new Set(), wantsName: true });
    else if (token === '[') open.push({ step: 0, names: undefined, wantsName: false });
    else if (token === '}' || token === ']') open.pop();
    else if (place !== undefined && token === ',') goOn(place);
    else if (place?.wantsName && isRepeated(place, token))
      found.add(jsonPointer(open.map(({ step }) => step)));
    if (found.size === MAX_FOUND) break;
  }
  return [...found];
}

function goOn(place: Place): void {
  if (typeof place.step === 'number') place.step++;
  else place.wantsName = true;
}

function isRepeated(place: Place, token: string): boolean {
  const name = JSON.parse(token) as string;
  place.step = name;
  place.wantsName = false;
  if (place.names?.has(name)) return true;
  place.names?.add(name);
  return false;
}

/** JSON nested deeper than this is refused; it leaves room for metadata at its own bound. */
const MAX_JSON_DEPTH = 64;
/** Members of messages around the values of their Structs. */
const SPARE_VALUES = 1_000;

/**
 * Parses a request's body, as for every protocol; `maxValues` bounds the values that its Structs can
 * have. Throws `request.malformed_json` and `request.invalid`.
 */
export function readJson(body: Uint8Array, maxValues: number): JsonValue {
  if (hasMoreValues(body, maxValues + SPARE_VALUES)) throw tooManyValues(maxValues);
  try {
    return parseJson(body, { maxDepth: MAX_JSON_DEPTH });
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    throw new ApiError(ErrorCode.REQUEST_MALFORMED_JSON, `the body cannot be read: ${error.message}`);
  }
}

/**
 * Whether a JSON text has more than `max` values, members and items alike, without parsing it. The result for
 * malformed JSON is unspecified.
 */
function hasMoreValues(json: Uint8Array, max: number): boolean {
  // Two bytes a value: most texts are too short.
  if (json.length <= 2 * max) return false;
  let values = 1;
  let isOpened = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number;
    if (byte <= SPACE) continue;
    // Setting bit 5 makes { of [ and } of ].
    const isEmpty = (byte | 0x20) === 0x7d;
    if (isOpened && !isEmpty) values++;
    isOpened = (byte | 0x20) === 0x7b;
    if (byte === COMMA) values++;
    if (values > max) return true;
    if (byte !== QUOTE) continue;
    for (at++; at < json.length && json[at] !== QUOTE; at++) if (json[at] === BACKSLASH) at++;
  }
  return false;
}

/** The error of a message with more values than its Structs can have. */
export function tooManyValues(maxValues: number): ApiError {
  return invalidRequest([{ path: '', message: `holds more than ${maxValues} values` }]);
}
