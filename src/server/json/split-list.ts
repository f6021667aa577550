import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import { jsonPointer } from '../../protocol/json-pointer.js';
import { ApiError } from '../core/errors.js';
import { invalidRequest } from './problems.js';

/** Returns the bytes of the next item of a list; undefined after the last. */
export type NextBytes = () => Uint8Array | undefined;

const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
/** The first bytes of a JSON value other than an object. */
const OTHER_VALUES = Buffer.from('["-0123456789tfn');

/** A text and a place in it. */
type Cursor = { readonly text: Uint8Array; at: number };

/**
 * Splits the JSON text of an object whose only member, `name`, is a list, without parsing the items: the caller does. A
 * text of which every item is well-formed, and that this has split to its end, is well-formed itself. An empty text is an
 * empty list. The function that it returns throws `request.malformed_json`, and `request.invalid` for other members.
 */
export function splitJsonList(text: Uint8Array, name: string): NextBytes {
  const cursor: Cursor = { text, at: 0 };
  let state: 'before' | 'inside' | 'after' = text.length === 0 ? 'after' : 'before';
  return () => {
    if (state === 'before') state = openList(cursor, name) ? 'inside' : 'after';
    if (state === 'after') return undefined;
    const start = cursor.at;
    const end = skipItem(cursor);
    if (isBlank(text, start, end)) throw malformed('an item is missing');
    if (text[end] === CLOSE_LIST) {
      state = 'after';
      closeObject(cursor, name);
    }
    return text.subarray(start, end);
  };
}

/** Skips to the first item. Returns false if there is none. */
function openList(cursor: Cursor, name: string): boolean {
  const first = peek(cursor);
  if (first !== undefined && OTHER_VALUES.includes(first)) {
    throw invalidRequest([{ path: '', message: 'must be an object' }]);
  }
  expect(cursor, OPEN_OBJECT, 'an object');
  if (peek(cursor) === CLOSE_OBJECT) {
    cursor.at++;
    expectEnd(cursor);
    return false;
  }
  const member = readName(cursor);
  if (member !== name) throw problem(member, 'is not a known member');
  expect(cursor, COLON, 'a colon');
  const opening = peek(cursor);
  if (opening === undefined) throw malformed('it ends before the list');
  if (opening !== OPEN_LIST) throw problem(name, 'must be an array');
  cursor.at++;
  if (peek(cursor) !== CLOSE_LIST) return true;
  cursor.at++;
  closeObject(cursor, name);
  return false;
}

/** Skips the end of the object, which alone may follow the list. */
function closeObject(cursor: Cursor, name: string): void {
  if (peek(cursor) === COMMA) {
    cursor.at++;
    const member = readName(cursor);
    throw problem(member, member === name ? 'is there twice' : 'is not a known member');
  }
  expect(cursor, CLOSE_OBJECT, 'the end of the object');
  expectEnd(cursor);
}

/** Skips an item and the comma or end of the list after it. Returns where the item ends. */
function skipItem(cursor: Cursor): number {
  const { text } = cursor;
  let depth = 0;
  for (let { at } = cursor; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === QUOTE) at = skipString(text, at);
    // Setting bit 5 makes { of [ and } of ].
    else if ((byte | 0x20) === OPEN_OBJECT) depth++;
    else if (depth > 0 && (byte | 0x20) === CLOSE_OBJECT) depth--;
    else if (depth === 0 && (byte === COMMA || byte === CLOSE_LIST)) {
      cursor.at = at + 1;
      return at;
    }
  }
  throw malformed('it ends within a list');
}

/** The place of the quote that ends a string. */
function skipString(text: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}

function readName(cursor: Cursor): string {
  if (peek(cursor) !== QUOTE) throw malformed('the name of a member is missing');
  const start = cursor.at;
  cursor.at = skipString(cursor.text, start) + 1;
  try {
    return JSON.parse(Buffer.from(cursor.text.subarray(start, cursor.at)).toString()) as string;
  } catch {
    throw malformed('the name of a member is no string');
  }
}

/** The next byte that is not white space; the cursor is at it. */
function peek(cursor: Cursor): number | undefined {
  while (isSpace(cursor.text[cursor.at])) cursor.at++;
  return cursor.text[cursor.at];
}

function expect(cursor: Cursor, byte: number, what: string): void {
  if (peek(cursor) !== byte) throw malformed(`${what} is missing`);
  cursor.at++;
}

function expectEnd(cursor: Cursor): void {
  if (peek(cursor) !== undefined) throw malformed('something follows its end');
}

function isBlank(text: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at < end && isSpace(text[at])) at++;
  return at === end;
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === NEWLINE || byte === RETURN || byte === TAB;
}

function malformed(reason: string): ApiError {
  return new ApiError(ErrorCode.REQUEST_MALFORMED_JSON, `the body cannot be read: ${reason}`);
}

function problem(member: string, message: string): ApiError {
  return invalidRequest([{ path: jsonPointer([member]), message }]);
}
