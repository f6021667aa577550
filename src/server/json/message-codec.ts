import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
} from '@bufbuild/protobuf';
import { Edition, FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import {
  asFields,
  type Fields,
  fieldSetter,
  findFieldValue,
  isJsonObject,
  type ValueCodec,
} from './field.js';
import { type Reading, report } from './problems.js';

type MemberReader = (json: JsonValue, message: Fields, reading: Reading) => void;

/** JSON texts of some fields of a message. */
export type FieldTexts<M> = { readonly [K in keyof M]?: string };

/** The codec of a message type. `writeWith` copies texts in place of the values of their fields. */
export type MessageCodec = ValueCodec & {
  writeWith: (message: unknown, texts: FieldTexts<Record<string, unknown>>) => string;
};

/** A codec without fields, and the function that adds one. Two steps, because a message type may be recursive. */
type ObjectCodec = { codec: MessageCodec; addField: (field: DescField, value: ValueCodec) => void };

/** Writes a member of a message, or '' if it is left out. */
type MemberWriter = { localName: string; key: string; write: (message: Fields) => string };

/**
 * The codec of a message: a JSON object, its members by proto name in the order they are added. Lists,
 * maps and scalars without presence always appear, everything else if set. Proto3 only.
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
  const prefixed = (text: string) => (text === '' ? '' : key + text);
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
