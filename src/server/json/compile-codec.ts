/**
 * JSON of the REST API, compiled from the protos: snake_case members, enum values by name (option `spelling`), 64-bit integers as
 * numbers, Structs as canonical JSON, and every problem of a request at its JSON pointer. protobuf-es's toJson and
 * fromJson speak ProtoJSON (lowerCamelCase, 64-bit integers as strings, the first problem only), and no other library
 * does this; hence this codec.
 */

import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { isWrapperDesc } from '@bufbuild/protobuf/wkt';
import { listCodec, mapCodec } from './container-codec.js';
import type { ValueCodec } from './field.js';
import { admittedNames } from './field-rules.js';
import { type MessageCodec, objectCodec } from './message-codec.js';
import { enumCodec, scalarCodec } from './scalar-codec.js';
import { findWellKnownCodec } from './well-known-codec.js';

/** The codecs of one compilation, by message type, so that a message can hold its own type. */
type Compiled = Map<DescMessage, MessageCodec>;

/** The codec of a message. Throws, naming the field, if one has no JSON. */
export function compileMessageCodec(desc: DescMessage, compiled: Compiled): MessageCodec {
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
export function compileFieldCodec(field: DescField, compiled: Compiled): ValueCodec {
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
