/** The first and the last line of a set file, which have the members beside the entries. */
import { printablePointerStep } from '../../protocol/json-pointer.js';
import { MAX_PROBLEMS } from '../../protocol/problem.js';
import { parseJsonText } from '../verify/read/json-text.js';
import { isBounded } from '../verify/read/read-json.js';
import { SET_MEDIA_TYPE } from './create-set.js';
import { MAX_LINE_BYTES } from './lines.js';
import { SetError, unsupported } from './set-error.js';

/** The members of a line but its `media_type` and `entries`. */
export type Members = Readonly<Record<string, unknown>>;

const OPENING = '"entries":[';

const FORM =
  'a set file begins with {"media_type":…,"entries":[ in its first line, has one entry a line, and its head in the last';

/**
 * Reads the first line, up to the bracket that opens the entries. Throws SetError; of a media type that another version may
 * know with `isUnsupported`.
 */
export function readFirstLine(text: string): Members {
  if (text.startsWith('\ufeff')) throw new SetError('set.shape', 'begins with a byte order mark');
  if (!text.startsWith('{') || !text.endsWith(OPENING)) {
    throw new SetError('set.shape', `is not that of a set file: ${FORM}`);
  }
  const { media_type: mediaType, entries, ...others } = parseMembers(`${text}]}`);
  if (!Array.isArray(entries) || entries.length > 0) {
    throw new SetError('set.shape', `is not that of a set file: ${FORM}`);
  }
  if (typeof mediaType !== 'string') throw new SetError('set.shape', 'has no media_type');
  if (mediaType !== SET_MEDIA_TYPE) {
    throw unsupported('has a media type of sets that this version does not know');
  }
  return others;
}

/** Reads the last line, from the bracket that closes the entries. Throws SetError. */
export function readLastLine(text: string): Members {
  const rest = text.slice(1);
  if (rest === '}') return {};
  if (!rest.startsWith(',')) throw new SetError('set.shape', 'is cut off, or is not the end of a set file');
  const members = parseMembers(`{${rest.slice(1)}`);
  for (const name of ['media_type', 'entries']) {
    if (Object.hasOwn(members, name)) throw new SetError('set.shape', `has ${name} after the entries`);
  }
  return members;
}

/** Joins the members of both lines. Throws SetError if the head is missing or in both. */
export function joinMembers(first: Members, last: Members): { head: unknown; ignored: string[] } {
  const { head: early, ...before } = first;
  const { head: late, ...after } = last;
  if (early !== undefined && late !== undefined) throw new SetError('set.shape', 'the head is in it twice');
  if (early === undefined && late === undefined) throw new SetError('set.shape', 'the head is missing');
  const names = [...Object.keys(before), ...Object.keys(after)];
  if (new Set(names).size < names.length) throw new SetError('set.shape', 'a member is in it twice');
  const ignored = names.slice(0, MAX_PROBLEMS).map((name) => `/${printablePointerStep(name)}`);
  return { head: early ?? late, ignored };
}

/** Throws FormatError, or SetError if a value is too deep. */
function parseMembers(text: string): Members {
  const value = parseJsonText(text, MAX_LINE_BYTES + 2);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SetError('set.shape', 'is not one JSON object');
  }
  if (!isBounded(value)) throw new SetError('set.shape', 'is too large or too deep');
  return value as Members;
}
