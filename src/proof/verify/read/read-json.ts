/**
 * Parses a message from JSON of REST (snake_case, enum names of REST, numbers) or ProtoJSON. Strict and bounded.
 * Reports all wrong members, not only the first.
 */
import {
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { findEnumNumber } from '../../../protocol/enum-names.js';
import { printablePointerStep } from '../../../protocol/json-pointer.js';
import { MAX_PROBLEMS, type Problem } from '../../../protocol/problem.js';
import { fromBase64 } from '../../bytes/encoding.js';
import { FormatError } from '../../bytes/format-error.js';

/** Limits of parsing. */
type ReadOptions = {
  /** Maximum length of each list. */
  readonly maxItems: number;
  /** Limits of free-form JSON, instead of those for details of witnesses. */
  readonly structs?: { readonly maxDepth: number; readonly maxValues: number };
};

type Reading = ReadOptions & { readonly problems: Problem[]; readonly ignored: string[] };

/** An enum value of a later version, as proto3's open enums can hold it. */
export const UNKNOWN_ENUM_VALUE: number = -1;

const ENUM_VALUE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

const MAX_STRING_CHARACTERS = 256 * 1024;
const STRUCT_LIMITS = { maxDepth: 16, maxValues: 4096 };

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
const INTEGER = /^(0|-?[1-9]\d{0,15})$/;

/**
 * Parses JSON; returns the message and JSON pointers to at most 100 members that are not known, which are ignored, or all
 * problems. An enum value that is not known is UNKNOWN_ENUM_VALUE in the message.
 */
export function readMessage<D extends DescMessage>(
  schema: D,
  json: unknown,
  options: ReadOptions,
):
  | { message: MessageShape<D>; problems: []; ignored: string[] }
  | { message?: never; problems: Problem[]; ignored?: never } {
  const reading: Reading = { ...options, problems: [], ignored: [] };
  const protoJson = readObject(schema, json, '', reading);
  if (reading.problems.length > 0) return { problems: reading.problems.slice(0, MAX_PROBLEMS) };
  try {
    return { message: fromJson(schema, protoJson), problems: [], ignored: reading.ignored };
  } catch {
    return { problems: [{ path: '', message: `is not a ${schema.name}` }] };
  }
}

function readObject(schema: DescMessage, json: unknown, path: string, reading: Reading): JsonObject {
  const object: JsonObject = {};
  if (!isPlainObject(json)) return addProblem(reading, path, 'must be an object', object);
  for (const [name, value] of Object.entries(json)) {
    const field = schema.fields.find((known) => known.name === name || known.jsonName === name);
    const at = `${path}/${field === undefined ? printablePointerStep(name) : name}`;
    if (field === undefined) {
      if (reading.ignored.length < MAX_PROBLEMS) reading.ignored.push(at);
    } else if (Object.hasOwn(object, field.jsonName)) {
      addProblem(reading, at, 'occurs in both spellings', undefined);
    } else {
      object[field.jsonName] = readField(field, value, at, reading);
    }
  }
  return object;
}

function readField(field: DescField, json: unknown, path: string, reading: Reading): JsonValue {
  if (field.fieldKind !== 'list') return readSingle(field, json, path, reading);
  if (!Array.isArray(json)) return addProblem(reading, path, 'must be an array', []);
  if (json.length > reading.maxItems) {
    return addProblem(reading, path, `has more than ${reading.maxItems} items`, []);
  }
  return json.map((item, i) => readSingle(field, item, `${path}/${i}`, reading));
}

function readSingle(field: DescField, json: unknown, path: string, reading: Reading): JsonValue {
  if (field.message) return readMessageValue(field.message, json, path, reading);
  if (field.enum) return readEnum(field.enum, json, path, reading);
  return readScalar(field.scalar, json, path, reading);
}

function readMessageValue(schema: DescMessage, json: unknown, path: string, reading: Reading): JsonValue {
  switch (schema.typeName) {
    case 'google.protobuf.Struct':
      return readStruct(json, path, reading);
    case 'google.protobuf.Timestamp':
      return readText(
        json,
        path,
        reading,
        'an RFC 3339 time',
        (text) => TIMESTAMP.test(text) && !Number.isNaN(Date.parse(text)),
      );
    case 'google.protobuf.Duration':
      return readText(json, path, reading, 'a duration in seconds', (text) =>
        /^\d{1,12}(\.\d{1,9})?s$/.test(text),
      );
    default:
      return readObject(schema, json, path, reading);
  }
}

function readEnum(schema: DescEnum, json: unknown, path: string, reading: Reading): string | number {
  const number = typeof json === 'string' ? findEnumNumber(schema, json) : undefined;
  const known = schema.values.find((value) => json === value.name || value.number === number);
  if (known !== undefined) return known.name;
  return isLaterEnumValue(schema, json)
    ? UNKNOWN_ENUM_VALUE
    : addProblem(reading, path, `is not a known ${schema.name}`, '');
}

/** ProtoJSON has the number of a value that its writer did not know. */
function isLaterEnumValue({ value }: DescEnum, json: unknown): boolean {
  if (typeof json === 'string') return ENUM_VALUE.test(json);
  return typeof json === 'number' && Number.isInteger(json) && value[json] === undefined;
}

function readScalar(type: ScalarType | undefined, json: unknown, path: string, reading: Reading): JsonValue {
  switch (type) {
    case ScalarType.STRING:
      return readText(json, path, reading, 'a text', () => true);
    case ScalarType.BYTES:
      return readText(json, path, reading, 'base64', isBase64);
    case ScalarType.INT32:
    case ScalarType.INT64:
      return isInteger(json) ? String(json) : addProblem(reading, path, 'must be an integer below 2^53', '0');
    case ScalarType.BOOL:
      return typeof json === 'boolean' ? json : addProblem(reading, path, 'must be true or false', false);
    default:
      throw new Error(`scalar type ${type} is not read at ${path}`);
  }
}

function readText(
  json: unknown,
  path: string,
  reading: Reading,
  what: string,
  isRight: (text: string) => boolean,
): string {
  if (typeof json !== 'string') return addProblem(reading, path, `must be ${what}`, '');
  if (json.length > MAX_STRING_CHARACTERS) return addProblem(reading, path, 'is too long', '');
  return isRight(json) ? json : addProblem(reading, path, `must be ${what}`, '');
}

/**
 * Returns free-form JSON unchanged, members named `__proto__` included. Bounds its depth, number of values and length of
 * strings.
 */
function readStruct(json: unknown, path: string, reading: Reading): JsonObject {
  if (!isPlainObject(json)) return addProblem(reading, path, 'must be an object', {});
  return isBounded(json, reading.structs ?? STRUCT_LIMITS)
    ? (json as JsonObject)
    : addProblem(reading, path, 'is too large, too deep or not plain JSON', {});
}

/** Whether a value is plain JSON within these limits, as free-form JSON in a bundle by default. */
export function isBounded(root: object, { maxDepth, maxValues } = STRUCT_LIMITS): boolean {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }];
  for (let seen = 0; open.length > 0; seen++) {
    const { value, depth } = open.pop()!;
    if (seen > maxValues || depth > maxDepth) return false;
    if (typeof value === 'string' && value.length > MAX_STRING_CHARACTERS) return false;
    if (typeof value === 'object' && value !== null) {
      const keys = Object.keys(value);
      if (keys.length > maxValues) return false;
      for (const item of Object.values(value)) open.push({ value: item, depth: depth + 1 });
    } else if (!['string', 'number', 'boolean'].includes(typeof value) && value !== null) {
      return false;
    }
  }
  return true;
}

function addProblem<T>(reading: Reading, path: string, message: string, instead: T): T {
  if (reading.problems.length < MAX_PROBLEMS) reading.problems.push({ path, message });
  return instead;
}

function isPlainObject(json: unknown): json is Record<string, unknown> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

function isInteger(json: unknown): boolean {
  const isSpelledRight = typeof json === 'number' || (typeof json === 'string' && INTEGER.test(json));
  return isSpelledRight && Number.isSafeInteger(Number(json));
}

function isBase64(text: string): boolean {
  try {
    return fromBase64(text).length >= 0;
  } catch {
    return false;
  }
}

/** Message for a member whose parser threw. */
export function problemOf(error: unknown): string {
  return error instanceof FormatError ? error.message : 'cannot be read';
}
