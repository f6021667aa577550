/**
 * JSON of the REST API, compiled from the protos: snake_case members, enum values by name (option `spelling`), 64-bit
 * integers as numbers, Structs as canonical JSON, and every problem of a request at its JSON pointer. protobuf-es's
 * toJson and fromJson speak ProtoJSON (lowerCamelCase, 64-bit integers as strings, the first problem only), and no other
 * library does this; hence this codec.
 */

import type { DescField, DescMessage, JsonValue, MessageShape } from '@bufbuild/protobuf';
import { isWrapperDesc } from '@bufbuild/protobuf/wkt';
import { listCodec, mapCodec } from './container-codec.js';
import { type Fields, fieldSetter, findFieldValue, type ValueCodec } from './field.js';
import { admittedNames } from './field-rules.js';
import { type FieldTexts, type MessageCodec, objectCodec } from './message-codec.js';
import { invalidRequest, type Reading, startReading } from './problems.js';
import { enumCodec, scalarCodec } from './scalar-codec.js';
import { findWellKnownCodec } from './well-known-codec.js';

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

/** The codecs of one compilation, by message type, so that a message can hold its own type. */
type Compiled = Map<DescMessage, MessageCodec>;

/** The codec of a message. Throws, naming the field, if one has no JSON. */
function compileMessageCodec(desc: DescMessage, compiled: Compiled): MessageCodec {
  const known = compiled.get(desc);
  if (known !== undefined) return known;
  if (findWellKnownCodec(desc, false) !== undefined) {
    throw new Error(`${desc.typeName} has JSON as a field only, not on its own`);
  }
  const { codec, addField } = objectCodec(desc);
  compiled.set(desc, codec);
  for (const field of desc.fields) addField(field, compileFieldCodec(field, compiled));
  return codec;
}

/** The codec of a field's whole value, lists and maps included. Throws, naming the field, if it has no JSON. */
function compileFieldCodec(field: DescField, compiled: Compiled): ValueCodec {
  const item = compileItemCodec(field, compiled);
  if (field.fieldKind === 'list') return listCodec(item);
  return field.fieldKind === 'map' ? mapCodec(field.mapKey, item) : item;
}

/** The codec of a field's value, or of one item of its list or map. */
export function compileItemCodec(field: DescField, compiled: Compiled): ValueCodec {
  try {
    if (field.enum !== undefined) return enumCodec(field.enum, admittedNames(field));
    if (field.message === undefined)
      return scalarCodec(field.scalar, 'longAsString' in field && field.longAsString);
    return (
      findWellKnownCodec(field.message, isUnwrapped(field)) ?? compileMessageCodec(field.message, compiled)
    );
  } catch (error) {
    throw new Error(`${field.parent.typeName}.${field.name}: ${(error as Error).message}`, { cause: error });
  }
}

/** Whether messages hold the scalar itself where the field's type is a wrapper. */
function isUnwrapped(field: DescField): boolean {
  return field.fieldKind === 'message' && field.oneof === undefined && isWrapperDesc(field.message);
}
