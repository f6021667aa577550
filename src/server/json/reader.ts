import type { DescField, DescMessage, JsonValue, MessageShape } from '@bufbuild/protobuf';
import { fieldCodec, messageCodec } from './codec.js';
import { type Fields, fieldSetter } from './field.js';
import { invalidRequest, type Reading, startReading } from './problems.js';

/**
 * Compiles the reader of a type's messages from the JSON that the writer makes. Compile once per type.
 * Throws when a field's type has no spelling; what it returns throws `request.invalid` with every problem: unknown
 * members, wrong types, values out of range, text that cannot be stored. The depth of the JSON must be bounded by
 * the caller.
 */
export function compileReader<D extends DescMessage>(desc: D): (json: JsonValue) => MessageShape<D> {
  const read = compileMessageReader(desc);
  return (json) => {
    const reading = startReading();
    const message = read(json, reading);
    if (message === undefined || reading.problems.length > 0) throw invalidRequest(reading.problems);
    return message as MessageShape<D>;
  };
}

/** The same with a reading that others report problems to as well. Undefined if the JSON is no object. */
export function compileMessageReader(
  desc: DescMessage,
): (json: JsonValue, reading: Reading) => Fields | undefined {
  const { read } = messageCodec(desc, new Map());
  return (json, reading) => read(json, reading) as Fields | undefined;
}

/** Makes the function that reads one field of a message from JSON and sets it. */
export function compileFieldReader(
  field: DescField,
): (json: JsonValue, message: Fields, reading: Reading) => void {
  const { read } = fieldCodec(field, new Map());
  const set = fieldSetter(field);
  return (json, message, reading) => {
    const value = read(json, reading);
    if (value !== undefined) set(message, value, reading);
  };
}
