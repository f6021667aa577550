import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
} from '@bufbuild/protobuf';
import { Edition, FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import { fieldSetter } from './field.js';
import { type Reading, report } from './problems.js';
import { findWritten } from './serialized.js';
import { asFields, type Fields, isJsonObject, type ValueCodec } from './value.js';

type MemberReader = (json: JsonValue, message: Fields, reading: Reading) => void;

/** A message's codec that knows no field yet, and the function that adds one: a message may hold its own type. */
export type ObjectCodec = { codec: ValueCodec; addField: (field: DescField, value: ValueCodec) => void };

/**
 * How a message is spelled: a JSON object, its members by their proto names and in the order they are added. Lists,
 * maps and scalars without presence always appear, everything else when set. Proto3 only. The text of a frozen message
 * is remembered as long as the message lives.
 */
export function objectCodec(desc: DescMessage): ObjectCodec {
  if (desc.file.edition !== Edition.EDITION_PROTO3)
    throw new Error(`${desc.typeName} is not a proto3 message`);
  const writers: ((message: Fields) => string)[] = [];
  const readers = new Map<string, MemberReader>();
  const read = (json: JsonValue, reading: Reading) => {
    if (!isJsonObject(json)) return report(reading, 'must be an object');
    const message = asFields(create(desc));
    readMembers(readers, json, message, reading);
    return message;
  };
  return {
    codec: { write: (message) => writeObject(writers, message as Fields), read },
    addField: (field, value) => {
      writers.push(memberWriter(field, value));
      readers.set(field.name, memberReader(field, value));
    },
  };
}

/** Texts of frozen messages: whoever freezes one says that it stays as it is, and it is written once. */
const TEXTS = new WeakMap<object, string>();

function writeObject(writers: readonly ((message: Fields) => string)[], message: Fields): string {
  const written = findWritten(message);
  if (written !== undefined) return written.bytes.toString();
  if (!Object.isFrozen(message)) return writeMembers(writers, message);
  const known = TEXTS.get(message);
  if (known !== undefined) return known;
  const text = writeMembers(writers, message);
  TEXTS.set(message, text);
  return text;
}

function writeMembers(writers: readonly ((message: Fields) => string)[], message: Fields): string {
  let out = '{';
  for (const write of writers) {
    const member = write(message);
    if (member !== '') out += out.length === 1 ? member : `,${member}`;
  }
  return `${out}}`;
}

function readMembers(
  readers: ReadonlyMap<string, MemberReader>,
  json: JsonObject,
  message: Fields,
  reading: Reading,
): void {
  for (const name of Object.keys(json)) {
    reading.path.push(name);
    const read = readers.get(name);
    if (read === undefined) report(reading, 'is not a known member');
    else read(json[name] as JsonValue, message, reading);
    reading.path.pop();
  }
}

function memberReader(field: DescField, { read }: ValueCodec): MemberReader {
  const set = fieldSetter(field);
  return (json, message, reading) => {
    const value = read(json, reading);
    if (value !== undefined) set(message, value, reading);
  };
}

function memberWriter(field: DescField, { write }: ValueCodec): (message: Fields) => string {
  const { localName } = field;
  const key = `${JSON.stringify(field.name)}:`;
  const prefixed = (text: string) => (text === '' ? '' : key + text);
  if (field.oneof !== undefined) {
    const group = field.oneof.localName;
    return (message) => {
      const set = message[group] as { case: string | undefined; value: unknown };
      return set.case === localName ? prefixed(write(set.value)) : '';
    };
  }
  if (field.presence === FeatureSet_FieldPresence.IMPLICIT)
    return (message) => prefixed(write(message[localName]));
  return (message) => {
    const value = message[localName];
    return value === undefined ? '' : prefixed(write(value));
  };
}
