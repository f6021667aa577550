/** Bytes and variable-length integers (LEB128) of the OpenTimestamps format. */
import { concatBytes } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';

/** Reads from the front of bytes. Each method throws FormatError if too few are left. */
export type ByteReader = {
  /** The next `length` bytes. */
  bytes(length: number): Uint8Array;
  byte(): number;
  /** An unsigned integer below 2^32 in its shortest form. */
  varuint(): number;
  /** Bytes after their length, which is at most `maxLength`. */
  varbytes(maxLength: number): Uint8Array;
  /** Throws FormatError if bytes are left. */
  end(): void;
};

const MAX_VARUINT_BYTES = 5;
const MAX_VARUINT = 2 ** 32 - 1;

/** Reads all of `bytes` with `read`. Throws FormatError if it leaves some. */
export function readBytes<T>(bytes: Uint8Array, read: (reader: ByteReader) => T): T {
  const reader = byteReader(bytes);
  const value = read(reader);
  reader.end();
  return value;
}

/** Encodes an unsigned integer in LEB128. */
export function encodeVaruint(value: number): Uint8Array {
  const encoded: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    encoded.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Uint8Array.of(...encoded, rest);
}

/** Encodes bytes after their length. */
export function encodeVarbytes(bytes: Uint8Array): Uint8Array {
  return concatBytes(encodeVaruint(bytes.length), bytes);
}

function byteReader(input: Uint8Array): ByteReader {
  let offset = 0;
  const bytes = (length: number): Uint8Array => {
    if (length > input.length - offset) throw new FormatError('an OpenTimestamps proof ends too early');
    offset += length;
    return input.slice(offset - length, offset);
  };
  const byte = () => bytes(1)[0]!;
  const varuint = () => readVaruint(byte);
  return {
    bytes,
    byte,
    varuint,
    varbytes(maxLength) {
      const length = varuint();
      if (length > maxLength) throw new FormatError('an OpenTimestamps proof has a part that is too long');
      return bytes(length);
    },
    end() {
      if (offset < input.length) throw new FormatError('an OpenTimestamps proof has bytes after its end');
    },
  };
}

/** Rejects non-minimal encodings of a number: a proof has one encoding. */
function readVaruint(byte: () => number): number {
  let value = 0;
  for (let i = 0; i < MAX_VARUINT_BYTES; i++) {
    const next = byte();
    value += (next % 0x80) * 0x80 ** i;
    if (next >= 0x80) continue;
    if ((next === 0 && i > 0) || value > MAX_VARUINT) break;
    return value;
  }
  throw new FormatError('an OpenTimestamps proof has an invalid integer');
}
