/** Lines of an object, compressed or not, in bounded memory. */
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { MAX_LINE_BYTES } from '../../../proof/export/verify-line.js';

const NEWLINE = 0x0a;
const READ_BYTES = 256 * 1024;

/**
 * Inflates gzip files in a row. Throws FormatError if anything is after them, and the error of zlib if they cannot be
 * inflated. `bytesRead` returns the length of what was read of `stored`.
 */
export async function* inflate(
  stored: AsyncIterable<Uint8Array>,
  bytesRead: () => number,
): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: READ_BYTES });
  // The error is that of the stream as well.
  pipeline(Readable.from(stored), gunzip, () => {});
  yield* gunzip;
  if (gunzip.bytesWritten !== bytesRead())
    throw new FormatError('there are bytes after the end of the gzip file');
}

/** The lines of pieces, without their newlines. Throws FormatError if they are not whole lines of at most 1 MiB. */
export async function* splitLines(pieces: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array> {
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
