import type { DescField, JsonObject, JsonValue, Message } from '@bufbuild/protobuf';
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
