import type { DescField, JsonObject, JsonValue, Message } from '@bufbuild/protobuf';
import { type Reading, report } from './problems.js';

/** Sets a field of a message; a second member of a oneof is a problem at the place the reading stands at. */
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

/** What a field holds, or undefined when it is not set. */
export function findFieldValue(field: DescField, message: Fields): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const set = message[field.oneof.localName] as { case: string | undefined; value: unknown };
  return set.case === field.localName ? set.value : undefined;
}

/** A message seen by its generated property names. */
export type Fields = Record<string, unknown>;

/** The same message. */
export function asFields(message: Message): Fields {
  return message as unknown as Fields;
}

/** Spells a field's value as JSON text; '' when the value has no spelling and is left out. */
export type ValueWriter = (value: unknown) => string;

/** Reads a field's value; undefined when it is wrong, which is then noted in the reading. */
export type ValueReader = (json: JsonValue, reading: Reading) => unknown;

/** How one kind of value is spelled, both ways. */
export type ValueCodec = { write: ValueWriter; read: ValueReader };

/** Whether JSON is an object, neither an array nor null. */
export function isJsonObject(json: JsonValue): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
