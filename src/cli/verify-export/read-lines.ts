/** Reads the lines of an object, compressed or not, in bounded memory. */
import { createReadStream } from 'node:fs';
import { toHex } from '../../proof/bytes/encoding.js';
import { createSha256 } from '../../proof/bytes/primitives.js';
import { inflate, splitLines } from '../../server/exports/archive/object-lines.js';

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
