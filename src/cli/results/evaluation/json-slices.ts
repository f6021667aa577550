/** Finds the values in a large JSON text by their bytes, without parsing them: what is attested of a log is its bytes. */
import { UsageError } from '../../cli.js';

/** A value in a text: from byte `start` to before byte `end`. */
export type Slice = { readonly start: number; readonly end: number };

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_OBJECT, OPEN_ARRAY, CLOSE_OBJECT, CLOSE_ARRAY] = [0x7b, 0x5b, 0x7d, 0x5d];
const SPACES: ReadonlySet<number | undefined> = new Set([0x20, 0x0a, 0x0d, 0x09]);
const ENDS: ReadonlySet<number | undefined> = new Set([...SPACES, COMMA, CLOSE_OBJECT, CLOSE_ARRAY]);

const MAX_MEMBERS = 10_000;
const MAX_NAME_BYTES = 4096;

/**
 * The members of the object at `start` by their names. Values are not checked. Throws UsageError if there is no object, it
 * ends too early, has a member twice, or more than 10,000.
 */
export function sliceMembers(text: Uint8Array, start: number): ReadonlyMap<string, Slice> {
  const members = new Map<string, Slice>();
  for (const [name, value] of walk(text, start, OPEN_OBJECT)) {
    if (members.size === MAX_MEMBERS) throw new UsageError('an object of the log has too many members');
    if (members.has(name)) throw new UsageError(`the log has the member ${JSON.stringify(name)} twice`);
    members.set(name, value);
  }
  return members;
}

/** Yields the items of the array at `start`, as above. */
export function* sliceItems(text: Uint8Array, start: number): Generator<Slice> {
  for (const [, value] of walk(text, start, OPEN_ARRAY)) yield value;
}

/** Yields name and value of each member, or each item of an array with an empty name. */
function* walk(text: Uint8Array, start: number, open: number): Generator<readonly [string, Slice]> {
  let at = skipSpace(text, start);
  const close = open === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_ARRAY;
  if (text[at] !== open) throw malformed(at);
  at = skipSpace(text, at + 1);
  if (text[at] === close) return;
  for (;;) {
    let name = '';
    if (open === OPEN_OBJECT) {
      const end = skipString(text, at);
      name = parseName(text, { start: at, end });
      at = skipSpace(text, end);
      if (text[at] !== COLON) throw malformed(at);
      at = skipSpace(text, at + 1);
    }
    const end = skipValue(text, at);
    yield [name, { start: at, end }];
    at = skipSpace(text, end);
    if (text[at] === close) return;
    if (text[at] !== COMMA) throw malformed(at);
    at = skipSpace(text, at + 1);
  }
}

function parseName(text: Uint8Array, { start, end }: Slice): string {
  if (end - start > MAX_NAME_BYTES) throw malformed(start);
  try {
    return JSON.parse(Buffer.from(text.subarray(start, end)).toString());
  } catch {
    throw malformed(start);
  }
}

function skipSpace(text: Uint8Array, start: number): number {
  let at = start;
  while (SPACES.has(text[at])) at++;
  return at;
}

/** Where the value at `start` ends. */
function skipValue(text: Uint8Array, start: number): number {
  const first = text[start];
  if (first === QUOTE) return skipString(text, start);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) {
    let at = start;
    while (at < text.length && !ENDS.has(text[at])) at++;
    if (at === start) throw malformed(at);
    return at;
  }
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const byte = text[at];
    if (byte === QUOTE) at = skipString(text, at) - 1;
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if ((byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) && --depth === 0) return at + 1;
  }
  throw malformed(text.length);
}

function skipString(text: Uint8Array, start: number): number {
  if (text[start] !== QUOTE) throw malformed(start);
  for (let at = text.indexOf(QUOTE, start + 1); at !== -1; at = text.indexOf(QUOTE, at + 1)) {
    let before = at - 1;
    while (text[before] === BACKSLASH) before--;
    if ((at - before) % 2 === 1) return at + 1;
  }
  throw malformed(text.length);
}

function malformed(at: number): UsageError {
  return new UsageError(`the log is truncated or not JSON at byte ${at + 1}`);
}
