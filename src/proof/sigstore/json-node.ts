/** Reading JSON from elsewhere, member by member: each refusal is a FormatError that names the member. Bounded. */
import { fromBase64 } from '../encoding.js';
import { FormatError } from '../format-error.js';
import { escapePointer, problemOf } from '../verify/read-json.js';

/** A JSON value and the JSON pointer to it. Members that are null count as missing, as in ProtoJSON. */
export type JsonNode = { readonly value: unknown; readonly path: string };

const MAX_ITEMS = 256;
const INTEGER = /^(0|-?[1-9]\d{0,15})$/;

/** A member of an object, or undefined when it is not there. */
export function findMember({ value, path }: JsonNode, name: string): JsonNode | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refused(path, 'must be an object');
  const member: unknown = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  return member == null ? undefined : { value: member, path: `${path}/${escapePointer(name)}` };
}

/** A member of an object, or one of a member of it: `getMember(node, 'logId', 'keyId')`. */
export function getMember(node: JsonNode, ...names: readonly string[]): JsonNode {
  return names.reduce((at, name) => {
    const found = findMember(at, name);
    if (found === undefined) throw refused(`${at.path}/${escapePointer(name)}`, 'is missing');
    return found;
  }, node);
}

/** The items of an array of at most 256; none when it is not there. */
export function items(node: JsonNode | undefined): JsonNode[] {
  if (node === undefined) return [];
  const { value, path } = node;
  if (!Array.isArray(value)) throw refused(path, 'must be an array');
  if (value.length > MAX_ITEMS) throw refused(path, `has more than ${MAX_ITEMS} items`);
  return value.map((item, i) => ({ value: item, path: `${path}/${i}` }));
}

/** A text. */
export function text({ value, path }: JsonNode): string {
  if (typeof value !== 'string') throw refused(path, 'must be a text');
  return value;
}

/** The bytes of a base64 text; of exactly `length` when it is given. */
export function bytes(node: JsonNode, length?: number): Uint8Array {
  return parsed(node, (base64) => fromBase64(base64, length));
}

/** A 64-bit integer, which ProtoJSON writes as a text, as far as it is safe: not negative and below 2^53. */
export function index({ value, path }: JsonNode): number {
  const isSpelledRight = typeof value === 'number' || (typeof value === 'string' && INTEGER.test(value));
  const number = Number(value);
  if (!isSpelledRight || !Number.isSafeInteger(number) || number < 0) {
    throw refused(path, 'must be an integer from 0 to below 2^53');
  }
  return number;
}

/** An RFC 3339 time in UTC. */
export function time(node: JsonNode): Date {
  const date = new Date(text(node));
  const isRight =
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(text(node)) && !Number.isNaN(date.getTime());
  if (!isRight) throw refused(node.path, 'must be an RFC 3339 time in UTC');
  return date;
}

/** What a parser makes of a text; what the parser refuses, refused with the member's name. */
export function parsed<T>(node: JsonNode, parse: (text: string) => T): T {
  const given = text(node);
  try {
    return parse(given);
  } catch (error) {
    throw refused(node.path, problemOf(error));
  }
}

/** The refusal of a member. */
export function refused(path: string, message: string): FormatError {
  return new FormatError(`${path === '' ? 'the document' : path}: ${message}`);
}
