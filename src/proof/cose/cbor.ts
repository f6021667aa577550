/** The part of CBOR (RFC 8949) that receipts are made of, in its deterministic encoding. */
import { concatBytes, fromUtf8, utf8 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';

/** An item with a tag. */
type Tagged = { readonly tag: number; readonly value: CborValue };

/** Integers, byte and text strings, arrays, maps with integers as keys, null, and tagged items. */
export type CborValue =
  | number
  | string
  | null
  | Uint8Array
  | readonly CborValue[]
  | ReadonlyMap<number, CborValue>
  | Tagged;

const [UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG] = [0, 1, 2, 3, 4, 5, 6];
const NULL = 0xf6;

/** Bounds of decoding. A receipt of 2^53 leaves takes 2 KiB and nests six deep. */
const [MAX_BYTES, MAX_DEPTH] = [16 * 1024, 8];

/** Encodes a value: shortest heads, definite lengths, maps in the order of their keys' encodings. */
export function encodeCbor(value: CborValue): Uint8Array {
  if (value === null) return Uint8Array.of(NULL);
  if (typeof value === 'number') return value < 0 ? head(NEGATIVE, -1 - value) : head(UNSIGNED, value);
  if (typeof value === 'string') return withLength(TEXT, utf8(value));
  if (value instanceof Uint8Array) return withLength(BYTES, value);
  if (isArray(value)) return concatBytes(head(ARRAY, value.length), ...value.map(encodeCbor));
  if (value instanceof Map) return encodeMap(value);
  const { tag, value: tagged } = value as Tagged;
  return concatBytes(head(TAG, tag), encodeCbor(tagged));
}

function encodeMap(map: ReadonlyMap<number, CborValue>): Uint8Array {
  const keys = [...map.keys()].sort(compareKeys);
  return concatBytes(
    head(MAP, map.size),
    ...keys.flatMap((key) => [encodeCbor(key), encodeCbor(map.get(key)!)]),
  );
}

/** The order of the encodings: integers from zero on come before the negative ones. */
function compareKeys(a: number, b: number): number {
  const rank = (key: number) => (key < 0 ? 2 ** 53 - key : key);
  return rank(a) - rank(b);
}

function withLength(major: number, bytes: Uint8Array): Uint8Array {
  return concatBytes(head(major, bytes.length), bytes);
}

function head(major: number, argument: number): Uint8Array {
  if (!Number.isSafeInteger(argument) || argument < 0) throw new RangeError('not an integer below 2^53');
  if (argument < 24) return Uint8Array.of((major << 5) | argument);
  const width = [1, 2, 4, 8].find((bytes) => argument < 2 ** (8 * bytes)) ?? 8;
  const bytes = new Uint8Array(1 + width);
  bytes[0] = (major << 5) | (24 + Math.log2(width));
  for (let i = width, rest = argument; i > 0; i--, rest = Math.floor(rest / 256)) bytes[i] = rest % 256;
  return bytes;
}

function isArray(value: CborValue): value is readonly CborValue[] {
  return Array.isArray(value);
}

/** Decodes one value. Throws FormatError unless the bytes are exactly its deterministic encoding, and within bounds. */
export function decodeCbor(bytes: Uint8Array): CborValue {
  if (bytes.length > MAX_BYTES) throw new FormatError(`more than ${MAX_BYTES} bytes of CBOR`);
  const reader = { bytes, at: 0 };
  const value = readValue(reader, MAX_DEPTH);
  if (reader.at !== bytes.length) throw new FormatError('bytes follow the CBOR item');
  return value;
}

type Reader = { readonly bytes: Uint8Array; at: number };

function readValue(reader: Reader, depth: number): CborValue {
  if (depth === 0) throw new FormatError('CBOR items nest too deep');
  if (reader.bytes[reader.at] === NULL) {
    reader.at++;
    return null;
  }
  const { major, argument } = readHead(reader);
  switch (major) {
    case UNSIGNED:
      return argument;
    case NEGATIVE:
      return -1 - argument;
    case BYTES:
      return take(reader, argument);
    case TEXT:
      return fromUtf8(take(reader, argument));
    case ARRAY:
      return readItems(reader, argument, depth);
    case MAP:
      return readMap(reader, argument, depth);
    case TAG:
      return { tag: argument, value: readValue(reader, depth - 1) };
    default:
      throw new FormatError('a CBOR item of an unknown kind');
  }
}

function readItems(reader: Reader, count: number, depth: number): CborValue[] {
  // Each item has at least one byte, so an exaggerated count ends with the input.
  const items: CborValue[] = [];
  for (let i = 0; i < count; i++) items.push(readValue(reader, depth - 1));
  return items;
}

function readMap(reader: Reader, count: number, depth: number): Map<number, CborValue> {
  const map = new Map<number, CborValue>();
  let before: number | undefined;
  for (let i = 0; i < count; i++) {
    const key = readValue(reader, depth - 1);
    if (typeof key !== 'number') throw new FormatError('a CBOR map has a key that is no integer');
    if (before !== undefined && compareKeys(before, key) >= 0) {
      throw new FormatError('a CBOR map is not in order');
    }
    map.set(key, readValue(reader, depth - 1));
    before = key;
  }
  return map;
}

function readHead(reader: Reader): { major: number; argument: number } {
  const first = take(reader, 1)[0]!;
  const [major, short] = [first >> 5, first & 31];
  if (short < 24) return { major, argument: short };
  if (short > 27) throw new FormatError('a CBOR item without a definite length');
  const argument = take(reader, 2 ** (short - 24)).reduce((value, byte) => value * 256 + byte, 0);
  if (!Number.isSafeInteger(argument)) throw new FormatError('a CBOR integer of 2^53 or more');
  const least = short === 24 ? 24 : 2 ** (8 * 2 ** (short - 25));
  if (argument < least) throw new FormatError('a CBOR item that is longer than need be');
  return { major, argument };
}

function take(reader: Reader, length: number): Uint8Array {
  const end = reader.at + length;
  if (end > reader.bytes.length) throw new FormatError('the CBOR item is cut off');
  const taken = reader.bytes.subarray(reader.at, end);
  reader.at = end;
  return taken;
}
