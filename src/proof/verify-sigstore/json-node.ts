/** Bounded parsing of untrusted JSON, member by member. All throw FormatError, which names the member. */

import { printablePointerStep } from '../../protocol/json-pointer.js';
import { fromBase64 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { problemOf } from '../verify/read/read-json.js';

/**
 * A JSON value and the JSON pointer to it. Members that are null count as missing, as in ProtoJSON. `ignored` gets the
 * pointers to members that the format does not have, at most 100.
 */
export type JsonNode = { readonly value: unknown; readonly path: string; readonly ignored?: string[] };

const MAX_ITEMS = 256;
const MAX_IGNORED = 100;
const INTEGER = /^(0|-?[1-9]\d{0,15})$/;

/** A member of an object; undefined if it is missing. */
export function findMember({ value, path, ...rest }: JsonNode, name: string): JsonNode | undefined {
  if (!isObject(value)) throw refused(path, 'must be an object');
  const member: unknown = Object.hasOwn(value, name) ? value[name] : undefined;
  return member == null
    ? undefined
    : { ...rest, value: member, path: `${path}/${printablePointerStep(name)}` };
}

/** A member of an object, or one of a member of it: `getMember(node, 'logId', 'keyId')`. */
export function getMember(node: JsonNode, ...names: readonly string[]): JsonNode {
  return names.reduce((at, name) => {
    const found = findMember(at, name);
    if (found === undefined) throw refused(`${at.path}/${printablePointerStep(name)}`, 'is missing');
    return found;
  }, node);
}

/**
 * A message in ProtoJSON: an object with these fields, each at most once, under its JSON or proto name. Returns it with
 * the JSON names, and without other members, which a later version may have.
 */
export function message({ value, path, ...rest }: JsonNode, fields: readonly string[]): JsonNode {
  if (!isObject(value)) throw refused(path, 'must be an object');
  const names = new Map(fields.flatMap((field) => [field, protoName(field)].map((name) => [name, field])));
  const found: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const field = names.get(name);
    if (field === undefined) {
      if (rest.ignored !== undefined && rest.ignored.length < MAX_IGNORED)
        rest.ignored.push(`${path}/${printablePointerStep(name)}`);
      continue;
    }
    if (Object.hasOwn(found, field)) throw refused(`${path}/${field}`, 'occurs under two names');
    found[field] = member;
  }
  return { ...rest, value: found, path };
}

/** The one member of a oneof that is set, with its name. Throws if several are set, or none. */
export function oneOf(
  node: JsonNode,
  ...names: readonly string[]
): readonly [name: string, member: JsonNode] {
  const there = names.flatMap((name) => {
    const member = findMember(node, name);
    return member ? [[name, member] as const] : [];
  });
  const [only, ...others] = there;
  if (only === undefined || others.length > 0) {
    throw refused(node.path, `must have exactly one of ${names.join(', ')}`);
  }
  return only;
}

/** The items of an array of at most 256; empty if it is missing. */
export function items(node: JsonNode | undefined): JsonNode[] {
  if (node === undefined) return [];
  const { value, path, ...rest } = node;
  if (!Array.isArray(value)) throw refused(path, 'must be an array');
  if (value.length > MAX_ITEMS) throw refused(path, `has more than ${MAX_ITEMS} items`);
  return value.map((item, i) => ({ ...rest, value: item, path: `${path}/${i}` }));
}

/** A string. */
export function text({ value, path }: JsonNode): string {
  if (typeof value !== 'string') throw refused(path, 'must be a text');
  return value;
}

/** The bytes of a base64 string; exactly `length` of them if given. */
export function bytes(node: JsonNode, length?: number): Uint8Array {
  return parsed(node, (base64) => fromProtoBase64(base64, length));
}

/** Base64 as readers of ProtoJSON take it: either alphabet but not both, with or without padding, line breaks ignored. */
export function fromProtoBase64(text: string, length?: number): Uint8Array {
  const digits = text.replaceAll(/[\r\n]/g, '');
  if (/[-_]/.test(digits) && /[+/]/.test(digits)) throw new FormatError('has two alphabets of base64');
  const standard = digits.replaceAll('-', '+').replaceAll('_', '/');
  return fromBase64(standard.padEnd(Math.ceil(standard.length / 4) * 4, '='), length);
}

/** A 64-bit integer, a string in ProtoJSON: not negative and below 2^53. */
export function index({ value, path }: JsonNode): number {
  const isIntegerForm = typeof value === 'number' || (typeof value === 'string' && INTEGER.test(value));
  const number = Number(value);
  if (!isIntegerForm || !Number.isSafeInteger(number) || number < 0) {
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

/** Applies a parser to a string; its errors get the member's name. */
export function parsed<T>(node: JsonNode, parse: (text: string) => T): T {
  const given = text(node);
  try {
    return parse(given);
  } catch (error) {
    throw refused(node.path, problemOf(error));
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The proto name of a field's JSON name. */
function protoName(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The error for a member. */
export function refused(path: string, message: string): FormatError {
  return new FormatError(`${path === '' ? 'the document' : path}: ${message}`);
}
