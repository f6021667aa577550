/** Reads the lines of an object, compressed or not, in bounded memory. */
import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { toHex } from '../../proof/bytes/encoding.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { createSha256 } from '../../proof/bytes/primitives.js';
import { MAX_LINE_BYTES } from '../../proof/export/verify-line.js';

const NEWLINE = 0x0a;
const READ_BYTES = 256 * 1024;

/** An open object. */
export type ObjectReader = {
  /**
   * The lines in order, without their newlines. Rejects with FormatError if the bytes are not whole lines of at most
   * 1 MiB, with the error of zlib if they cannot be inflated, or with that of the file system.
   */
  readonly lines: AsyncIterable<Uint8Array>;
  /** Reads the rest, as it is stored, and returns the length and SHA-256 (hex) of all bytes. */
  finish(): Promise<{ bytes: number; sha256: string }>;
  close(): void;
};

/** Opens an object, which the caller closes. `onBytes` is called with the length of each piece that is read. */
export function openObject(path: string, onBytes: (bytes: number) => void): ObjectReader {
  const hash = createSha256();
  let bytes = 0;
  const file = createReadStream(path, { highWaterMark: READ_BYTES });
  const pieces = file[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const stored: AsyncIterable<Buffer> = {
    [Symbol.asyncIterator]: () => ({ next: () => pieces.next().then(count) }),
  };
  function count(read: IteratorResult<Buffer>): IteratorResult<Buffer> {
    if (!read.done) {
      hash.update(read.value);
      bytes += read.value.length;
      onBytes(read.value.length);
    }
    return read;
  }
  return {
    lines: splitLines(path.endsWith('.gz') ? inflate(stored, () => bytes) : stored),
    finish: async () => {
      for await (const _ of stored);
      return { bytes, sha256: toHex(hash.digest()) };
    },
    close: () => void file.destroy(),
  };
}

/** Inflates gzip files in a row, without anything after them. */
async function* inflate(stored: AsyncIterable<Buffer>, bytesRead: () => number): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: READ_BYTES });
  // The error is that of the stream as well.
  pipeline(Readable.from(stored), gunzip, () => {});
  yield* gunzip;
  if (gunzip.bytesWritten !== bytesRead())
    throw new FormatError('there are bytes after the end of the gzip file');
}

async function* splitLines(pieces: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
  let begun: Buffer[] = [];
  let length = 0;
  for await (const piece of pieces) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
      assertShort(length + end - start);
      const rest = piece.subarray(start, end);
      yield begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
      begun = [];
      length = 0;
      start = end + 1;
    }
    begun.push(piece.subarray(start));
    length += piece.length - start;
    assertShort(length);
  }
  if (length > 0) throw new FormatError('the last line has no newline: it is cut off');
}

function assertShort(length: number): void {
  if (length > MAX_LINE_BYTES) throw new FormatError('a line is longer than 1 MiB');
}
