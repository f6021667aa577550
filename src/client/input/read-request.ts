/** Requests as callers give them, checked by the descriptors: every member must be known and of its type. */
import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { isWrapperDesc, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { enumNames, findEnumNumber } from '../../protocol/enum-names.js';
import { isAttached } from './options.js';
import { kindOf, plainJsonObject, wellFormed } from './plain-json.js';
import { type Path, wrong } from './wrong.js';

/**
 * Makes the message of a request: a message of its type, or an object of its members, in which a time may be a Date and an
 * enum value a text as REST spells it. Metadata is copied, so that a later change of it is not sent. Throws TypeError with
 * the JSON pointer of an unknown member, a value of another type, or one that JSON does not have.
 */
export function readRequest<D extends DescMessage>(
  desc: D,
  given: unknown,
  path: Path = [],
): MessageShape<D> {
  return create(desc, readMembers(desc, given, path) as MessageInitShape<D>);
}

function readMembers(desc: DescMessage, given: unknown, path: Path): Record<string, unknown> {
  if (Object.prototype.toString.call(given) !== '[object Object]') {
    throw wrong(path, `must be an object with members of ${desc.name}, not ${kindOf(given)}`);
  }
  const object = given as Record<string | symbol, unknown>;
  const { $typeName: typeName = desc.typeName } = object;
  if (typeName !== desc.typeName) throw wrong(path, `must be a ${desc.name}, not a ${String(typeName)}`);
  for (const key of Reflect.ownKeys(object)) {
    if (key !== '$typeName' && key !== '$unknown') assertKnown(desc, key, path);
  }
  const members: Record<string, unknown> = {};
  for (const member of desc.members) {
    const value = object[member.localName];
    if (value === undefined) continue;
    const at = [...path, member.localName];
    members[member.localName] = member.kind === 'oneof' ? value : readField(member, value, at);
  }
  return members;
}

function assertKnown(desc: DescMessage, key: string | symbol, path: Path): void {
  if (desc.members.some(({ localName }) => localName === key)) return;
  const name = String(key);
  const meant = desc.fields.find((field) => field.name === name)?.localName;
  const remedy = meant ?? desc.members.map(({ localName }) => localName).join(', ');
  throw wrong([...path, name], `is not known: ${desc.name} has ${remedy || 'no members'}`);
}

function readField(field: DescField, value: unknown, path: Path): unknown {
  switch (field.fieldKind) {
    case 'list':
      if (!Array.isArray(value)) throw wrong(path, `must be an array, not ${kindOf(value)}`);
      return Array.from(value, (item, i) => readValue(field, item, [...path, i]));
    case 'map':
      if (Object.prototype.toString.call(value) !== '[object Object]') {
        throw wrong(path, `must be an object, not ${kindOf(value)}`);
      }
      return Object.fromEntries(
        Object.entries(value as object).map(([key, item]) => [key, readValue(field, item, [...path, key])]),
      );
    default:
      return readValue(field, value, path);
  }
}

/** A field's value, or an item of its list or map. */
function readValue(field: DescField, value: unknown, path: Path): unknown {
  if (field.enum !== undefined) return readEnum(field.enum, value, path);
  if (field.message === undefined) return readScalar(field.scalar ?? ScalarType.STRING, value, path);
  const { message } = field;
  if (message.typeName === 'google.protobuf.Struct') return plainJsonObject(value, path);
  if (message.typeName === 'google.protobuf.Timestamp') return readTime(message, value, path);
  const [inner] = message.fields;
  if (field.fieldKind === 'message' && isWrapperDesc(message) && inner !== undefined) {
    return readValue(inner, value, path);
  }
  return readRequest(message, value, path);
}

function readTime(desc: DescMessage, value: unknown, path: Path): unknown {
  if (Object.prototype.toString.call(value) === '[object Date]') {
    const date = value as Date;
    if (Number.isNaN(date.getTime())) throw wrong(path, 'is a Date that is no valid time');
    return timestampFromDate(date);
  }
  if (typeof value !== 'object' || value === null) {
    throw wrong(path, `must be a Date or a Timestamp, not ${kindOf(value)}`);
  }
  return readRequest(desc, value, path);
}

function readEnum(desc: DescEnum, value: unknown, path: Path): number {
  const number = typeof value === 'string' ? findEnumNumber(desc, value) : value;
  if (desc.values.some((known) => known.number === number)) return number as number;
  const given =
    typeof value === 'string' || typeof value === 'number' ? JSON.stringify(value) : kindOf(value);
  const names = enumNames(desc).map((name) => `'${name}'`);
  throw wrong(path, `must be a ${desc.name} (${names.join(', ')}), not ${given}`);
}

type Bounds = readonly [min: bigint, max: bigint];
const INT32: Bounds = [-(2n ** 31n), 2n ** 31n - 1n];
const UINT32: Bounds = [0n, 2n ** 32n - 1n];
const INT64: Bounds = [-(2n ** 63n), 2n ** 63n - 1n];
const UINT64: Bounds = [0n, 2n ** 64n - 1n];

function readScalar(type: ScalarType, value: unknown, path: Path): unknown {
  switch (type) {
    case ScalarType.STRING:
      if (typeof value !== 'string') throw wrong(path, `must be a string, not ${kindOf(value)}`);
      return wellFormed(value, path);
    case ScalarType.BOOL:
      if (typeof value !== 'boolean') throw wrong(path, `must be true or false, not ${kindOf(value)}`);
      return value;
    case ScalarType.BYTES:
      if (!isAttached(value)) throw wrong(path, `must be a Uint8Array, not ${kindOf(value)}`);
      return value;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      if (typeof value !== 'number') throw wrong(path, `must be a number, not ${kindOf(value)}`);
      return value;
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return Number(readInteger(value, UINT32, path));
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return Number(readInteger(value, INT32, path));
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return readInteger(value, UINT64, path);
    default:
      return readInteger(value, INT64, path);
  }
}

function readInteger(value: unknown, [min, max]: Bounds, path: Path): bigint {
  const isInteger = typeof value === 'bigint' || Number.isSafeInteger(value);
  const integer = isInteger ? BigInt(value as bigint | number) : undefined;
  if (integer !== undefined && integer >= min && integer <= max) return integer;
  const given = typeof value === 'number' || typeof value === 'bigint' ? String(value) : kindOf(value);
  throw wrong(path, `must be an integer from ${min} to ${max}, not ${given}`);
}
