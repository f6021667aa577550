import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from '@bufbuild/protobuf';
import {
  DurationSchema,
  isWrapperDesc,
  ListValueSchema,
  TimestampSchema,
  ValueSchema,
} from '@bufbuild/protobuf/wkt';
import { enumNames, findEnumNumber } from '../../../src/protocol/enum-names.js';

/** Draws an integer from 0 to below `bound`. */
export type Draw = (bound: number) => number;

/** A generator of the same draws for the same seed (mulberry32). */
export function draws(seed: number): Draw {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

/** A message with about a third of its fields set to values that REST JSON represents exactly. */
export function randomMessage(desc: DescMessage, draw: Draw, depth = 0): Record<string, unknown> {
  const message = create(desc) as unknown as Record<string, unknown>;
  for (const field of desc.fields) {
    if (draw(3) > 0 || (depth > 2 && field.message === desc)) continue;
    const value = fieldValue(field, draw, depth);
    if (field.oneof === undefined) message[field.localName] = value;
    else message[field.oneof.localName] = { case: field.localName, value };
  }
  return message;
}

const TEXTS = [
  '',
  'a',
  '"\\/\b\f\n\r\t',
  '\u2028\u2029',
  '\u00e9\u20ac\u{1f600}',
  '__proto__x',
  'null',
  '\u007f\u0001',
];
const DOUBLES = [
  0,
  1,
  -1,
  0.1,
  1e21,
  1e-7,
  5e-324,
  Number.MAX_VALUE,
  Number.NaN,
  Infinity,
  -Infinity,
  -0,
  2 ** 53,
];

function fieldValue(field: DescField, draw: Draw, depth: number): unknown {
  const item = () => itemValue(field, draw, depth);
  if (field.fieldKind === 'list') return Array.from({ length: draw(4) }, item);
  if (field.fieldKind !== 'map') return item();
  const keys = Array.from({ length: draw(4) }, () => mapKey(field.mapKey, draw));
  return Object.fromEntries(keys.map((key) => [key, item()]));
}

function itemValue(field: DescField, draw: Draw, depth: number): unknown {
  if (field.enum !== undefined) {
    const texts = enumNames(field.enum);
    return findEnumNumber(field.enum, texts[draw(texts.length)] as string);
  }
  if (field.message === undefined)
    return scalar(field.scalar, 'longAsString' in field && field.longAsString, draw);
  return messageValue(field, field.message, draw, depth);
}

function messageValue(field: DescField, desc: DescMessage, draw: Draw, depth: number): unknown {
  if (isWrapperDesc(desc)) {
    const value = scalar(desc.fields[0]?.scalar as ScalarType, false, draw);
    const isUnwrapped = field.fieldKind === 'message' && field.oneof === undefined;
    return isUnwrapped ? value : create(desc, { value } as never);
  }
  switch (desc.typeName) {
    case 'google.protobuf.Struct':
      return jsonObject(draw, 0);
    case ValueSchema.typeName:
      return fromJson(ValueSchema, json(draw, 0));
    case ListValueSchema.typeName:
      return fromJson(ListValueSchema, [json(draw, 0), json(draw, 0)]);
    case TimestampSchema.typeName:
      return create(TimestampSchema, {
        seconds: BigInt(draw(2 ** 32) * 50 - 60_000_000_000),
        nanos: draw(1000) * 1e6,
      });
    case DurationSchema.typeName: {
      const sign = draw(2) * 2 - 1;
      const nanos = [0, 1, 500_000_000, 1_000, 999_999_999][draw(5)] as number;
      return create(DurationSchema, {
        seconds: BigInt(draw(1e9) * sign),
        nanos: nanos === 0 ? 0 : nanos * sign,
      });
    }
    default:
      return randomMessage(desc, draw, depth + 1);
  }
}

function scalar(type: ScalarType, longAsString: boolean, draw: Draw): unknown {
  const long = (value: number) => (longAsString ? String(value) : BigInt(value));
  switch (type) {
    case ScalarType.STRING:
      return TEXTS[draw(TEXTS.length)];
    case ScalarType.BOOL:
      return draw(2) === 1;
    case ScalarType.BYTES:
      return Uint8Array.from({ length: draw(6) }, () => draw(256));
    case ScalarType.DOUBLE:
      return DOUBLES[draw(DOUBLES.length)];
    case ScalarType.FLOAT:
      return [0, 0.5, Math.fround(0.1), Math.fround(3.4e38), -0, Number.NaN, Infinity][draw(7)];
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)][draw(5)];
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return [0, 1, 2 ** 32 - 1][draw(3)];
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return long([0, 1, Number.MAX_SAFE_INTEGER][draw(3)] as number);
    default:
      return long([0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER][draw(5)] as number);
  }
}

function mapKey(type: ScalarType, draw: Draw): string {
  return type === ScalarType.STRING
    ? (TEXTS[draw(TEXTS.length)] as string)
    : String(scalar(type, false, draw));
}

function json(draw: Draw, depth: number): JsonValue {
  const kind = draw(depth > 2 ? 4 : 6);
  if (kind === 0) return null;
  if (kind === 1) return draw(2) === 1;
  if (kind === 2) return [0, 1.5, -1e300, 1e21, 123456789][draw(5)] as number;
  if (kind === 3) return TEXTS[draw(TEXTS.length)] as string;
  return kind === 4 ? [json(draw, depth + 1), json(draw, depth + 1)] : jsonObject(draw, depth + 1);
}

function jsonObject(draw: Draw, depth: number): JsonObject {
  return Object.fromEntries(
    Array.from({ length: draw(4) }, () => [TEXTS[draw(TEXTS.length)], json(draw, depth)]),
  );
}
