import type { DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';
import { compileFieldCodec, compileMessageCodec } from './compile-codec.js';
import { type Fields, findFieldValue } from './field.js';
import type { FieldTexts } from './message-codec.js';

/**
 * Compiles the writer of a message type's REST JSON: snake_case names in the proto's order, time stamps in UTC with
 * milliseconds, enum values by name, 64-bit integers as numbers, Structs as canonical JSON (RFC 8785). Compile once per
 * type. Throws if a field's type has no JSON; the writer throws RangeError for values that JSON cannot represent exactly.
 */
export function compileWriter<D extends DescMessage>(desc: D): (message: MessageShape<D>) => string {
  const { write } = compileMessageCodec(desc, new Map());
  return write;
}

/**
 * Like compileWriter, but the writer copies the JSON in `texts`, by property name, in place of those fields, set or not.
 * It does not check that they are JSON.
 */
export function compileSplicingWriter<D extends DescMessage>(
  desc: D,
): (message: MessageShape<D>, texts: FieldTexts<MessageShape<D>>) => string {
  const { writeWith } = compileMessageCodec(desc, new Map());
  return (message, texts) => writeWith(message, texts as FieldTexts<Record<string, unknown>>);
}

/** Like compileWriter for the value of one field; the writer returns `null` if the field is not set. */
export function compileFieldWriter(field: DescField): (message: Fields) => string {
  const { write } = compileFieldCodec(field, new Map());
  return (message) => {
    const value = findFieldValue(field, message);
    return (value === undefined ? '' : write(value)) || 'null';
  };
}
