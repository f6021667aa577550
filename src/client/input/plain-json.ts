/** Values of a program as the JSON that they are sent as: what JSON does not have is refused, not changed or left out. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type Path, wrong } from './wrong.js';

/** Deeper values are refused: the service takes half as much, and this is recursive. */
const MAX_DEPTH = 64;

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * A copy of a JSON object: plain objects, arrays, strings, booleans, null and finite numbers. Throws TypeError with the JSON
 * pointer of anything else (undefined, BigInt, Date, Map, class instances, NaN, lone surrogates, cycles, holes, symbols).
 */
export function plainJsonObject(value: unknown, path: Path): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong(path, `must be a JSON object, not ${kindOf(value)}`);
  }
  return plainJson(value, path) as JsonObject;
}

/** The same for a JSON value of any kind. */
export function plainJson(value: unknown, path: Path): JsonValue {
  return copy(value, { path: [...path], around: [] });
}

/** Where a value is: its path, and the objects around it. */
type Place = { readonly path: (string | number)[]; readonly around: object[] };

function copy(value: unknown, place: Place): JsonValue {
  switch (typeof value) {
    case 'string':
      return wellFormed(value, place.path);
    case 'number':
      if (Number.isFinite(value)) return value;
      throw wrong(place.path, `is ${value}, which JSON has no number for`);
    case 'boolean':
      return value;
    case 'object':
      return value === null ? null : copyObject(value, place);
    default:
      throw wrong(place.path, `is ${kindOf(value)}: ${REMEDIES[typeof value]}`);
  }
}

const REMEDIES: Readonly<Record<string, string>> = {
  undefined: 'leave the member out, or give null',
  bigint: 'give it as a string',
  function: 'JSON has no functions',
  symbol: 'JSON has no symbols',
};

/** A text that UTF-8 can encode. Throws TypeError. */
export function wellFormed(text: string, path: Path): string {
  if (LONE_SURROGATE.test(text)) throw wrong(path, 'has a lone surrogate, which UTF-8 cannot encode');
  return text;
}

function copyObject(value: object, { path, around }: Place): JsonValue {
  if (around.includes(value)) throw wrong(path, 'contains itself');
  if (around.length === MAX_DEPTH) throw wrong(path, `is more than ${MAX_DEPTH} levels deep`);
  around.push(value);
  const copied = Array.isArray(value)
    ? copyItems(value, { path, around })
    : copyMembers(value, { path, around });
  around.pop();
  return copied;
}

function copyItems(items: readonly unknown[], place: Place): JsonValue[] {
  // A hole has no key; a member beside the items has one.
  const keys = enumerableKeys(items);
  const copied = Array.from({ length: items.length }, (_, i) => {
    if (!Object.hasOwn(items, i)) throw wrong([...place.path, i], 'is a hole in the array: give null');
    return copyAt(items[i], i, place);
  });
  if (keys.length > items.length) throw wrong(place.path, 'is an array that has members beside its items');
  return copied;
}

function copyMembers(value: object, place: Place): JsonObject {
  if (!isPlain(value)) throw wrong(place.path, `is ${kindOf(value)}: ${remedyFor(value)}`);
  const members = enumerableKeys(value).map((name) => {
    if (typeof name === 'symbol') throw wrong(place.path, 'has a member that is named by a symbol');
    wellFormed(name, [...place.path, name]);
    return [name, copyAt((value as Record<string, unknown>)[name], name, place)] as const;
  });
  // Unlike an assignment, this makes a member of `__proto__`.
  return Object.fromEntries(members);
}

function copyAt(value: unknown, step: string | number, place: Place): JsonValue {
  place.path.push(step);
  const copied = copy(value, place);
  place.path.pop();
  return copied;
}

function enumerableKeys(value: object): (string | symbol)[] {
  return Reflect.ownKeys(value).filter((key) => Object.prototype.propertyIsEnumerable.call(value, key));
}

/** Whether an object is `{…}`, of this realm or another one, or has no prototype. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.hasOwn(prototype as object, 'isPrototypeOf');
}

function remedyFor(value: object): string {
  if (value instanceof Date) return 'give it as a string, as toISOString returns it';
  if (value instanceof Map) return 'give an object, as Object.fromEntries returns it';
  if (value instanceof Set) return 'give an array';
  return 'give a plain object';
}

/** Names the type of a value. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'bigint') return 'a BigInt';
  if (Array.isArray(value)) return 'an array';
  if (typeof value !== 'object') return `a ${typeof value}`;
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof name === 'string' && name !== '' && !isPlain(value) ? `an instance of ${name}` : 'an object';
}
