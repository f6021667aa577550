/** The JSON of protobuf's well-known types: time stamps, durations, wrappers, and structs. */
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
import { isJsonObject, type ValueCodec, type ValueReader } from './message-codec.js';
import { report } from './problems.js';
import { scalarCodec } from './scalar-codec.js';
import { checkFreeForm } from './strict-json.js';

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

/** The fields of `google.protobuf.Timestamp` and `google.protobuf.Duration`. */
export type Seconds = { seconds: bigint; nanos: number };

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
const MIN_SECONDS = -62_135_596_800; // 0001-01-01T00:00:00Z
const MAX_SECONDS = 253_402_300_799; // 9999-12-31T23:59:59Z

const DURATION = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/;
const MAX_DURATION_SECONDS = 315_576_000_000;

/** Parses an RFC 3339 time stamp with any offset and up to nine fractional digits; undefined if it is none. */
function parseTimestamp(text: string): Seconds | undefined {
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction, sign, offsetHour = '0', offsetMinute = '0'] =
    match;
  const isTime = Number(hour) < 24 && Number(minute) < 60 && Number(second) < 60;
  const isOffset = Number(offsetHour) < 24 && Number(offsetMinute) < 60;
  if (!isTime || !isOffset) return undefined;
  const midnight = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  midnight.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (midnight.getUTCMonth() !== Number(month) - 1 || midnight.getUTCDate() !== Number(day)) return undefined;
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -60 : 60);
  const timeOfDay = Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  const seconds = midnight.getTime() / 1000 + timeOfDay - offset;
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) return undefined;
  return { seconds: BigInt(seconds), nanos: nanosOf(fraction) };
}

/** Whether seconds and nanoseconds are a time of the years 1 to 9999, as every time stamp must be. */
export function isTimestamp({ seconds, nanos }: Seconds): boolean {
  return seconds >= MIN_SECONDS && seconds <= MAX_SECONDS && nanos >= 0 && nanos < 1e9;
}

/** The time as a Date, truncated to milliseconds: rounding up could exceed the year 9999. */
export function dateOfTimestamp({ seconds, nanos }: Seconds): Date {
  return new Date(Number(seconds) * 1000 + Math.floor(nanos / 1e6));
}

/** The first whole millisecond that is not before the time, the last one of the year 9999 at most. */
export function dateNotBefore({ seconds, nanos }: Seconds): Date {
  return new Date(Math.min(Number(seconds) * 1000 + Math.ceil(nanos / 1e6), MAX_SECONDS * 1000 + 999));
}

/** Cache of formatted seconds: formatting takes 0.5 µs, and the times of a list are in few seconds. */
const FORMATTED = new Map<number, string>();
const MAX_FORMATTED = 1_000;

/** RFC 3339 in UTC, truncated to milliseconds. Throws RangeError outside the years 1 to 9999. */
function formatTimestamp({ seconds, nanos }: Seconds): string {
  const wholeSeconds = Number(seconds);
  if (wholeSeconds < MIN_SECONDS || wholeSeconds > MAX_SECONDS)
    throw new RangeError('time stamp out of range');
  return `${formatSecond(wholeSeconds)}.${String(Math.floor(nanos / 1e6)).padStart(3, '0')}Z`;
}

/** RFC 3339 in UTC of Unix milliseconds, as Date.toISOString writes it: for many of one second in an eighth of its time. */
export function formatMs(ms: number): string {
  const second = Math.floor(ms / 1000);
  return `${formatSecond(second)}.${String(ms - second * 1000).padStart(3, '0')}Z`;
}

function formatSecond(seconds: number): string {
  const known = FORMATTED.get(seconds);
  if (known !== undefined) return known;
  const text = new Date(seconds * 1000).toISOString().slice(0, -'.000Z'.length);
  if (FORMATTED.size >= MAX_FORMATTED) FORMATTED.clear();
  FORMATTED.set(seconds, text);
  return text;
}

/** Parses a ProtoJSON duration in seconds (`3600s`, `-0.5s`); undefined if it is none. */
function parseDuration(text: string): Seconds | undefined {
  const match = DURATION.exec(text);
  if (match === null) return undefined;
  const seconds = Number(match[2]);
  const nanos = nanosOf(match[3]);
  if (seconds > MAX_DURATION_SECONDS || (seconds === MAX_DURATION_SECONDS && nanos > 0)) return undefined;
  const sign = match[1] === '-' ? -1 : 1;
  // `0 * -1` is -0; a decoded message has 0.
  return { seconds: BigInt(seconds * sign), nanos: nanos === 0 ? 0 : nanos * sign };
}

/** A duration in ProtoJSON: seconds with no, three, six or nine digits after the point. */
function formatDuration({ seconds, nanos }: Seconds): string {
  const isNegative = seconds < 0n || nanos < 0;
  const whole = seconds < 0n ? -seconds : seconds;
  const digits = String(Math.abs(nanos))
    .padStart(9, '0')
    .replace(/^(\d{3})(\d{3})000$/, '$1$2')
    .replace(/^(\d{3})000$/, '$1');
  return `${isNegative ? '-' : ''}${whole}${nanos === 0 ? '' : `.${digits}`}s`;
}

function nanosOf(fraction: string | undefined): number {
  return fraction === undefined ? 0 : Number(fraction.padEnd(9, '0'));
}
