/** Messages as JSON objects: access to their fields, and the codec of a message out of those of its fields' values. */
import {
  create,
  type DescField,
  type DescMessage,
  getOption,
  type JsonObject,
  type JsonValue,
  type Message,
} from '@bufbuild/protobuf';
import { Edition, FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import { omit_empty as omitEmpty } from '../../../gen/attestation/options/v1/options_pb.js';
import { type Reading, report } from './problems.js';

/** Sets a field of a message. Reports a second member of a oneof at the reading's path. */
export type FieldSetter = (message: Fields, value: unknown, reading: Reading) => void;

/** Makes the setter of a field. */
export function fieldSetter(field: DescField): FieldSetter {
  const { localName, oneof } = field;
  if (oneof === undefined) {
    return (message, value) => {
      message[localName] = value;
    };
  }
  const names = new Map(oneof.fields.map((member) => [member.localName, member.name]));
  return (message, value, reading) => {
    const set = message[oneof.localName] as { case: string | undefined };
    if (set.case === undefined) message[oneof.localName] = { case: localName, value };
    else report(reading, `excludes ${names.get(set.case)}, which is given too`);
  };
}

/** The value of a field, or undefined if it is not set. */
export function findFieldValue(field: DescField, message: Fields): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const set = message[field.oneof.localName] as { case: string | undefined; value: unknown };
  return set.case === field.localName ? set.value : undefined;
}

/** A message as a record of its generated properties. */
export type Fields = Record<string, unknown>;

/** The same message. */
export function asFields(message: Message): Fields {
  return message as unknown as Fields;
}

/** Serialises a field's value as JSON; '' if the value has no JSON and is left out. */
type ValueWriter = (value: unknown) => string;

/** Reads a field's value. Returns undefined if it is invalid, which is reported to the reading. */
export type ValueReader = (json: JsonValue, reading: Reading) => unknown;

/** Writes and reads one type of value. */
export type ValueCodec = { write: ValueWriter; read: ValueReader };

/** Whether JSON is an object, neither an array nor null. */
export function isJsonObject(json: JsonValue): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

type MemberReader = (json: JsonValue, message: Fields, reading: Reading) => void;

/** JSON texts of some fields of a message. */
export type FieldTexts<M> = { readonly [K in keyof M]?: string };

/** The codec of a message type. `writeWith` copies texts in place of the values of their fields. */
export type MessageCodec = ValueCodec & {
  read: (json: JsonValue, reading: Reading) => Fields | undefined;
  writeWith: (message: unknown, texts: FieldTexts<Record<string, unknown>>) => string;
};

/** A codec without fields, and the function that adds one. Two steps, because a message type may be recursive. */
type ObjectCodec = { codec: MessageCodec; addField: (field: DescField, value: ValueCodec) => void };

/** Writes a member of a message, or '' if it is left out. */
type MemberWriter = { localName: string; key: string; write: (message: Fields) => string };

/**
 * The codec of a message: a JSON object, its members by proto name in the order they are added. Lists (unless the option
 * `omit_empty` says otherwise), maps and scalars without presence always appear, everything else if set. Proto3 only.
 */
export function objectCodec(desc: DescMessage): ObjectCodec {
  if (desc.file.edition !== Edition.EDITION_PROTO3)
    throw new Error(`${desc.typeName} is not a proto3 message`);
  const writers: MemberWriter[] = [];
  const readers = new Map<string, MemberReader>();
  const read = (json: JsonValue, reading: Reading) => {
    if (!isJsonObject(json)) return report(reading, 'must be an object');
    const message = asFields(create(desc));
    readMembers(readers, json, message, reading);
    return message;
  };
  return {
    codec: {
      write: (message) => writeMembers(writers, message as Fields, NO_TEXTS),
      writeWith: (message, texts) => writeMembers(writers, message as Fields, texts),
      read,
    },
    addField: (field, value) => {
      writers.push(memberWriter(field, value));
      readers.set(field.name, memberReader(field, value));
    },
  };
}

const NO_TEXTS = {};

function writeMembers(
  writers: readonly MemberWriter[],
  message: Fields,
  texts: FieldTexts<Record<string, unknown>>,
): string {
  let out = '{';
  for (const { localName, key, write } of writers) {
    const text = texts[localName];
    const member = text === undefined ? write(message) : key + text;
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

function memberWriter(field: DescField, { write }: ValueCodec): MemberWriter {
  const { localName, oneof } = field;
  const key = `${JSON.stringify(field.name)}:`;
  const omitted = getOption(field, omitEmpty) ? '[]' : '';
  const prefixed = (text: string) => (text === '' || text === omitted ? '' : key + text);
  if (oneof === undefined && field.presence === FeatureSet_FieldPresence.IMPLICIT)
    return { localName, key, write: (message) => prefixed(write(message[localName])) };
  return {
    localName,
    key,
    write: (message) => {
      const value = findFieldValue(field, message);
      return value === undefined ? '' : prefixed(write(value));
    },
  };
}
