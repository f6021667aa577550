import { create, type DescMessage, fromJson, type JsonValue, toJson } from '@bufbuild/protobuf';
import {
  DurationSchema,
  isWrapperDesc,
  ListValueSchema,
  type StringValue,
  TimestampSchema,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import { canonicalJson } from '../../proof/bytes/jcs.js';
import { isJsonObject, type ValueCodec, type ValueReader } from './field.js';
import { type Reading, report } from './problems.js';
import { FORBIDDEN_TEXT, scalarCodec } from './scalar-codec.js';
import { isForbiddenText } from './strict-json.js';
import { formatDuration, formatTimestamp, parseDuration, parseTimestamp, type Seconds } from './timestamp.js';

/**
 * The codec of a field whose type is of `google.protobuf`; undefined for other types. Throws for types that have no JSON
 * in the REST API.
 *
 * @param unwrapped whether the field holds the scalar itself in place of a wrapper message
 */
export function findWellKnownCodec(desc: DescMessage, unwrapped: boolean): ValueCodec | undefined {
  if (isWrapperDesc(desc)) return wrapperCodec(desc, unwrapped);
  const codec = CODECS.get(desc.typeName);
  if (codec === undefined && WITHOUT_JSON.has(desc.typeName))
    throw new Error(`${desc.typeName} has no JSON on REST`);
  return codec;
}

/** Whether a field of this type is one JSON string, and so can be one query parameter. */
export function isTextual(desc: DescMessage): boolean {
  return desc.typeName === TimestampSchema.typeName || desc.typeName === DurationSchema.typeName;
}

const WITHOUT_JSON: ReadonlySet<string> = new Set(['google.protobuf.Any', 'google.protobuf.FieldMask']);

const NO_TIMESTAMP = 'must be an RFC 3339 time stamp, as in 2024-01-31T12:00:00Z';

const CODECS: ReadonlyMap<string, ValueCodec> = new Map([
  [
    TimestampSchema.typeName,
    {
      write: (value) => `"${formatTimestamp(value as Seconds)}"`,
      read: secondsReader(TimestampSchema, parseTimestamp, NO_TIMESTAMP),
    },
  ],
  [
    DurationSchema.typeName,
    {
      write: (value) => `"${formatDuration(value as Seconds)}"`,
      read: secondsReader(DurationSchema, parseDuration, 'must be a duration in seconds, as in "1.5s"'),
    },
  ],
  // Fields hold a Struct as a plain JSON object.
  [
    'google.protobuf.Struct',
    {
      write: writeCanonical,
      read: formed(isJsonObject, 'must be an object', (json) => json),
    },
  ],
  [
    ValueSchema.typeName,
    {
      write: (value) => writeCanonical(toJson(ValueSchema, value as never)),
      read: freeFormReader((json) => fromJson(ValueSchema, json)),
    },
  ],
  [
    ListValueSchema.typeName,
    {
      write: (value) => writeCanonical(toJson(ListValueSchema, value as never)),
      read: formed(Array.isArray, 'must be an array', (json) => fromJson(ListValueSchema, json)),
    },
  ],
]);

function wrapperCodec(desc: DescMessage, unwrapped: boolean): ValueCodec {
  const [field] = desc.fields;
  if (field?.fieldKind !== 'scalar') throw new Error(`${desc.typeName} is not a wrapper`);
  const scalar = scalarCodec(field.scalar, field.longAsString);
  if (unwrapped) return scalar;
  return {
    write: (message) => scalar.write((message as StringValue).value),
    read: (json, reading) => {
      const value = scalar.read(json, reading);
      return value === undefined ? undefined : create(desc, { value } as never);
    },
  };
}

function secondsReader(
  desc: DescMessage,
  parse: (text: string) => Seconds | undefined,
  expected: string,
): ValueReader {
  return (json, reading) => {
    const value = typeof json === 'string' ? parse(json) : undefined;
    return value === undefined ? report(reading, expected) : create(desc, value as never);
  };
}

function formed(
  hasForm: (json: JsonValue) => boolean,
  expected: string,
  convert: (json: JsonValue) => unknown,
): ValueReader {
  const read = freeFormReader(convert);
  return (json, reading) => (hasForm(json) ? read(json, reading) : report(reading, expected));
}

/** Makes the reader of a free-form value; `convert` makes its message. The caller bounds the value's depth. */
function freeFormReader(convert: (json: JsonValue) => unknown): ValueReader {
  return (json, reading) => {
    const known = reading.problems.length;
    checkFreeForm(json, reading);
    return reading.problems.length === known ? convert(json) : undefined;
  };
}

/** The value as canonical JSON (RFC 8785). */
function writeCanonical(value: unknown): string {
  const text = canonicalJson(value);
  if (text === undefined) throw new TypeError('not a JSON value');
  return text;
}

/** Reports every text and number in a value that canonical JSON or the database cannot represent. */
export function checkFreeForm(json: JsonValue, reading: Reading): void {
  if (typeof json === 'string') checkText(json, reading);
  // JSON.parse makes Infinity of 1e999.
  else if (typeof json === 'number' && !Number.isFinite(json)) report(reading, 'is out of range');
  else if (Array.isArray(json)) {
    for (let index = 0; index < json.length; index++) checkAt(index, json[index] as JsonValue, reading);
  } else if (typeof json === 'object' && json !== null) {
    for (const name of Object.keys(json)) checkAt(name, json[name] as JsonValue, reading);
  }
}

function checkAt(step: string | number, json: JsonValue, reading: Reading): void {
  reading.path.push(step);
  if (typeof step === 'string') checkText(step, reading);
  checkFreeForm(json, reading);
  reading.path.pop();
}

/** Reports a text that cannot be stored. */
export function checkText(text: string, reading: Reading): void {
  if (isForbiddenText(text)) report(reading, FORBIDDEN_TEXT);
}
