import type { DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';
import { fieldCodec, messageCodec } from './codec.js';
import { type Fields, findFieldValue } from './field.js';
import type { FieldTexts } from './message.js';

/**
 * Compiles the writer of a type's messages as REST's JSON: snake_case names in the proto's order,
 * time stamps in UTC with milliseconds, enum values by their spelling, 64-bit integers as numbers, Structs as
 * canonical JSON (RFC 8785). Compile once per type. Throws when a field's type has no spelling; what it returns
 * throws RangeError for a value that JSON cannot hold exactly.
 */
export function compileWriter<D extends DescMessage>(desc: D): (message: MessageShape<D>) => string {
  const { write } = messageCodec(desc, new Map());
  return write;
}

/**
 * The same, but copies JSON texts in place of some fields, whether they are set or not: `texts` has them by the names of
 * the message's properties. Nothing checks that they are JSON.
 */
export function compileSplicingWriter<D extends DescMessage>(
  desc: D,
): (message: MessageShape<D>, texts: FieldTexts<MessageShape<D>>) => string {
  const { writeWith } = messageCodec(desc, new Map());
  return (message, texts) => writeWith(message, texts as FieldTexts<Record<string, unknown>>);
}

/** The same for the value of one field of a message: `null` when it is not set. */
export function compileFieldWriter(field: DescField): (message: Fields) => string {
  const { write } = fieldCodec(field, new Map());
  return (message) => {
    const value = findFieldValue(field, message);
    return (value === undefined ? '' : write(value)) || 'null';
  };
}
