import { type DescEnum, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import { enumNames, findEnumNumber } from '../../protocol/enum-names.js';
import type { ValueCodec, ValueReader } from './message-codec.js';
import { type Reading, report } from './problems.js';
import { FORBIDDEN_TEXT, isForbiddenText } from './strict-json.js';

const INT32 = { least: -(2 ** 31), most: 2 ** 31 - 1 };
const UINT32 = { least: 0, most: 2 ** 32 - 1 };
// 64-bit integers are JSON numbers, exact as far as doubles are.
const INT64 = { least: Number.MIN_SAFE_INTEGER, most: Number.MAX_SAFE_INTEGER };
const UINT64 = { least: 0, most: Number.MAX_SAFE_INTEGER };
/** Text without escapes in JSON; this check takes half the time of JSON.stringify. */
const PLAIN_TEXT = /^[ !#-[\]-~]*$/;
const MAX_FLOAT = 3.4028234663852886e38;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const NON_FINITE: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

/**
 * The codec of a scalar: integers of every width and floats as numbers, bytes as standard base64.
 *
 * @param longAsString whether messages hold 64-bit integers as strings (`jstype = JS_STRING`)
 */
export function scalarCodec(type: ScalarType, longAsString: boolean): ValueCodec {
  switch (type) {
    case ScalarType.STRING:
      return { write: writeString, read: readString };
    case ScalarType.BOOL:
      return { write: (value) => (value === true ? 'true' : 'false'), read: readBool };
    case ScalarType.BYTES:
      return { write: (value) => `"${base64(value as Uint8Array)}"`, read: readBytes };
    case ScalarType.DOUBLE:
      return { write: writeFloat, read: (json, reading) => readFloat(json, reading, Number.MAX_VALUE) };
    case ScalarType.FLOAT:
      return { write: writeFloat, read: readSingle };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { write: String, read: integerReader(INT32, Number) };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { write: String, read: integerReader(UINT32, Number) };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { write: writeLong, read: integerReader(UINT64, longAsString ? String : BigInt) };
    default:
      return { write: writeLong, read: integerReader(INT64, longAsString ? String : BigInt) };
  }
}

function writeString(value: unknown): string {
  return PLAIN_TEXT.test(value as string) ? `"${value}"` : JSON.stringify(value);
}

function readString(json: JsonValue, reading: Reading): unknown {
  if (typeof json !== 'string') return report(reading, 'must be a string');
  return isForbiddenText(json) ? report(reading, FORBIDDEN_TEXT) : json;
}

function readBool(json: JsonValue, reading: Reading): unknown {
  return typeof json === 'boolean' ? json : report(reading, 'must be true or false');
}

function readBytes(json: JsonValue, reading: Reading): unknown {
  if (typeof json !== 'string' || !BASE64.test(json))
    return report(reading, 'must be a string in standard base64');
  const bytes = Buffer.from(json, 'base64');
  // Bits of the last digit that stand for nothing must be zero (RFC 4648, 3.5).
  if (bytes.toString('base64') !== json) return report(reading, 'must be a string in standard base64');
  return new Uint8Array(bytes);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

function writeFloat(value: unknown): string {
  if (!Number.isFinite(value)) return `"${value}"`;
  return Object.is(value, -0) ? '-0' : String(value);
}

function readFloat(json: JsonValue, reading: Reading, most: number): number | undefined {
  const value = typeof json === 'string' ? NON_FINITE[json] : json;
  if (typeof value !== 'number') return report(reading, 'must be a number');
  // JSON.parse makes Infinity of 1e999.
  if (typeof json === 'number' && Math.abs(json) > most) return report(reading, 'is out of range');
  return value;
}

function readSingle(json: JsonValue, reading: Reading): unknown {
  const value = readFloat(json, reading, MAX_FLOAT);
  return value === undefined ? undefined : Math.fround(value);
}

function writeLong(value: unknown): string {
  if (!Number.isSafeInteger(Number(value))) throw new RangeError(`${value} is too large for a JSON number`);
  return String(value);
}

function integerReader(
  range: { least: number; most: number },
  convert: (value: number) => unknown,
): ValueReader {
  return (json, reading) => {
    if (typeof json !== 'number' || !Number.isInteger(json)) return report(reading, 'must be an integer');
    if (json < range.least || json > range.most) {
      return report(reading, `must be between ${range.least} and ${range.most}`);
    }
    // Adding 0 makes 0 of -0.
    return convert(json + 0);
  };
}

/**
 * The codec of an enum by the names of its values (option `spelling`). Values without a name and unknown values are left
 * out. Throws if no value has a name.
 *
 * @param admitted the names that the field's rules admit, for error messages
 */
export function enumCodec(desc: DescEnum, admitted: readonly string[]): ValueCodec {
  const texts = enumNames(desc);
  if (texts.length === 0) throw new Error(`no value of ${desc.typeName} has a name`);
  const numbers = new Map(texts.map((text) => [text, findEnumNumber(desc, text)]));
  if (numbers.size < texts.length) throw new Error(`two values of ${desc.typeName} share a name`);
  const byNumber = new Map([...numbers].map(([text, number]) => [number, JSON.stringify(text)]));
  const expected = `must be one of ${admitted.join(', ')}`;
  return {
    write: (value) => byNumber.get(value as number) ?? '',
    read: (json, reading) => {
      const number = typeof json === 'string' ? numbers.get(json) : undefined;
      return number ?? report(reading, expected);
    },
  };
}
