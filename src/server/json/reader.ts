import type { DescField, DescMessage, JsonValue, MessageShape } from '@bufbuild/protobuf';
import { compileFieldCodec, compileMessageCodec } from './compile-codec.js';
import { type Fields, fieldSetter } from './field.js';
import { invalidRequest, type Reading, startReading } from './problems.js';

/**
 * Compiles the reader of a message type's REST JSON. Compile once per type. Throws if a field's type has no JSON; the
 * reader throws `request.invalid` with every problem: unknown members, wrong types, values out of range, text that
 * cannot be stored. The caller bounds the depth of the JSON.
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

/** Like compileReader, but the reader reports problems to `reading` and returns undefined if the JSON is no object. */
export function compileMessageReader(
  desc: DescMessage,
): (json: JsonValue, reading: Reading) => Fields | undefined {
  const { read } = compileMessageCodec(desc, new Map());
  return (json, reading) => read(json, reading) as Fields | undefined;
}

/** Compiles the function that reads one field of a message from JSON and sets it. */
export function compileFieldReader(
  field: DescField,
): (json: JsonValue, message: Fields, reading: Reading) => void {
  const { read } = compileFieldCodec(field, new Map());
  const set = fieldSetter(field);
  return (json, message, reading) => {
    const value = read(json, reading);
    if (value !== undefined) set(message, value, reading);
  };
}
