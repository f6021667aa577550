import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { findRules } from '../../json/field-rules.js';
import type { Fields } from '../../json/message-codec.js';
import { type Reading, report, reportAt } from '../../json/problems.js';
import { decodePercent } from '../request-target.js';
import { findFieldPath, findTextSetter, type TextSetter } from './field-path.js';

/** Sets fields of a message from a URL's query, without its `?`. */
type QueryReader = (query: string, message: Fields, reading: Reading) => void;

type Parameter = { set: TextSetter; isRepeated: boolean; mayBeEmpty: boolean };

/** Deeper parameter names are refused: a recursive message type would allow them without end. */
const MAX_DEPTH = 16;
const MALFORMED = 'is not percent-encoded UTF-8';

/**
 * Makes the reader of the query parameters of an RPC: `limit=5&status=queued&filter.author=x&tag=a&tag=b`, `+` being
 * a space. Unknown names, a second value for a singular field and malformed encoding are problems at `/<name>`.
 *
 * @param bound fields that path or body give, by their dotted proto names, `*` for all; nothing at or below them can
 *   be a parameter
 */
export function compileQueryReader(desc: DescMessage, bound: readonly string[]): QueryReader {
  // Names of several levels are resolved each time: a recursive type has no end of them.
  const topLevel = new Map(desc.fields.map(({ name }) => [name, resolve(desc, name, bound)]));
  return (query, message, reading) => {
    const seen = new Set<string>();
    for (const piece of query.split('&')) {
      if (piece === '') continue;
      const { name, text, rawName } = splitPiece(piece);
      if (name === undefined || text === undefined) {
        reportAt(reading, rawName, MALFORMED);
        continue;
      }
      const parameter = topLevel.get(name) ?? resolve(desc, name, bound);
      if (typeof parameter === 'string') reportAt(reading, name, parameter);
      else if (seen.has(name) && !parameter.isRepeated) reportAt(reading, name, 'is given more than once');
      else setParameter(parameter, name, text, message, reading);
      seen.add(name);
    }
  };
}

/** A name and its value as in HTML forms; either is undefined when its encoding is malformed. */
function splitPiece(piece: string): { name: string | undefined; text: string | undefined; rawName: string } {
  const equals = piece.indexOf('=');
  const rawName = equals < 0 ? piece : piece.slice(0, equals);
  return { name: decodeForm(rawName), text: equals < 0 ? '' : decodeForm(piece.slice(equals + 1)), rawName };
}

function decodeForm(text: string): string | undefined {
  return decodePercent(text.includes('+') ? text.replaceAll('+', ' ') : text);
}

/** The parameter of this name, or the problem of the name. */
function resolve(desc: DescMessage, name: string, bound: readonly string[]): Parameter | string {
  const names = name.split('.');
  const fields = names.length > MAX_DEPTH ? undefined : findFieldPath(desc, names);
  const leaf = fields?.at(-1);
  if (fields === undefined || leaf === undefined) return 'is not a known parameter';
  if (bound.includes('*')) return 'belongs in the body';
  if (bound.some((taken) => name === taken || name.startsWith(`${taken}.`)))
    return 'belongs in the path or the body';
  const set = findTextSetter(fields);
  return set === undefined
    ? 'cannot be given as a query parameter'
    : { set, isRepeated: leaf.fieldKind === 'list', mayBeEmpty: !hasLeastLength(leaf) };
}

/** Whether a text that is given must have characters: in a message an empty one is the same as none. */
function hasLeastLength(field: DescField): boolean {
  const rules = findRules(field);
  return rules?.type.case === 'string' && (rules.type.value.minLen > 0n || rules.type.value.len > 0n);
}

function setParameter(
  { set, mayBeEmpty }: Parameter,
  name: string,
  text: string,
  message: Fields,
  reading: Reading,
): void {
  reading.path.push(name);
  if (text === '' && !mayBeEmpty) report(reading, 'must not be empty');
  else set(text, message, reading);
  reading.path.pop();
}
