/**
 * JSON of the REST API, compiled from the protos: snake_case members, enum values by name (option `spelling`), 64-bit
 * integers as numbers, Structs as canonical JSON, and every problem of a request at its JSON pointer. protobuf-es's
 * toJson and fromJson speak ProtoJSON (lowerCamelCase, 64-bit integers as strings, the first problem only), and no other
 * library does this; hence this codec.
 */

import {
  type DescField,
  type DescMessage,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { isWrapperDesc } from '@bufbuild/protobuf/wkt';
import { admittedNames } from './field-rules.js';
import {
  type Fields,
  type FieldTexts,
  fieldSetter,
  findFieldValue,
  isJsonObject,
  type MessageCodec,
  objectCodec,
  type ValueCodec,
  type ValueReader,
} from './message-codec.js';
import { invalidRequest, type Reading, report, startReading } from './problems.js';
import { enumCodec, scalarCodec } from './scalar-codec.js';
import { FORBIDDEN_TEXT, isForbiddenText } from './strict-json.js';
import { findWellKnownCodec } from './well-known-types.js';

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
  return compileMessageCodec(desc, new Map()).read;
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

/** A JSON array; items without JSON are left out. */
function listCodec(item: ValueCodec): ValueCodec {
  return {
    write: (values) => {
      let out = '';
      for (const value of values as readonly unknown[]) {
        const text = item.write(value);
        if (text !== '') out += out === '' ? text : `,${text}`;
      }
      return `[${out}]`;
    },
    read: (json, reading) =>
      Array.isArray(json) ? readItems(json, item.read, reading) : report(reading, 'must be an array'),
  };
}

function readItems(json: readonly JsonValue[], read: ValueReader, reading: Reading): unknown[] {
  return json.map((item, index) => {
    reading.path.push(index);
    const value = read(item, reading);
    reading.path.pop();
    return value;
  });
}

/** A JSON object by the map's keys; values without JSON are left out. */
function mapCodec(keyType: ScalarType, item: ValueCodec): ValueCodec {
  const findKeyProblem = keyCheck(keyType);
  return {
    write: (map) => {
      let out = '';
      for (const [key, value] of Object.entries(map as object)) {
        const text = item.write(value);
        if (text !== '') out += `${out === '' ? '' : ','}${JSON.stringify(key)}:${text}`;
      }
      return `{${out}}`;
    },
    read: (json, reading) => {
      if (!isJsonObject(json)) return report(reading, 'must be an object');
      const map: Record<string, unknown> = {};
      for (const key of Object.keys(json)) {
        reading.path.push(key);
        const problem = findKeyProblem(key);
        if (problem === undefined) map[key] = item.read(json[key] as JsonValue, reading);
        else report(reading, problem);
        reading.path.pop();
      }
      return map;
    },
  };
}

const INTEGER = /^(?:0|-?[1-9]\d{0,15})$/;

/** Returns the check of a key, which returns a problem or undefined. In JSON keys of every type are strings. */
function keyCheck(type: ScalarType): (key: string) => string | undefined {
  if (type === ScalarType.BOOL) {
    return (key) => (key === 'true' || key === 'false' ? undefined : 'must be named true or false');
  }
  if (type === ScalarType.STRING) {
    return (key) => {
      // Assigning it would set the prototype, here and wherever the message is copied.
      if (key === '__proto__') return 'must not be named __proto__';
      return isForbiddenText(key) ? FORBIDDEN_TEXT : undefined;
    };
  }
  const { read } = scalarCodec(type, false);
  return (key) => {
    const isInRange = INTEGER.test(key) && read(Number(key), { path: [], problems: [] }) !== undefined;
    return isInRange ? undefined : 'must be named by an integer in range';
  };
}
