import { type DescField, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { isWrapperDesc } from '@bufbuild/protobuf/wkt';
import { compileItemCodec } from './codec.js';
import type { Reading } from './problems.js';
import { isTextual } from './well-known-types.js';

/** Reads a field's value, or one item of its list, from a path segment or query parameter. */
type TextReader = (text: string, reading: Reading) => unknown;

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Compiles the reader of a field that a single text can represent: scalars, enums, time stamps, durations, wrappers.
 * Undefined for other types and for maps.
 */
export function findTextReader(field: DescField): TextReader | undefined {
  if (field.fieldKind === 'map') return undefined;
  if (field.message !== undefined && !isWrapperDesc(field.message) && !isTextual(field.message))
    return undefined;
  const { read } = compileItemCodec(field, new Map());
  const toJson = textToJson(field);
  return (text, reading) => read(toJson(text), reading);
}

/** Converts text to the JSON value of the field's type; returns other text unchanged, which the codec rejects. */
function textToJson(field: DescField): (text: string) => JsonValue {
  if (field.enum !== undefined) return (text) => text;
  if (field.message !== undefined && isTextual(field.message)) return restorePlus;
  switch (field.message === undefined ? field.scalar : field.message.fields[0]?.scalar) {
    case ScalarType.STRING:
      return (text) => text;
    case ScalarType.BYTES:
      return restorePlus;
    case ScalarType.BOOL:
      return (text) => (text === 'true' ? true : text === 'false' ? false : text);
    default:
      return (text) => (NUMBER.test(text) ? Number(text) : text);
  }
}

/** Restores an unescaped `+`, which URL decoding turned into a space, in values that cannot contain spaces. */
function restorePlus(text: string): string {
  return text.replaceAll(' ', '+');
}
