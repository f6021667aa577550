import type { JsonObject, JsonValue, Message } from '@bufbuild/protobuf';
import type { Reading } from './problems.js';

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
