import { fromUtf8 } from '../bytes/encoding.js';
import { SetError } from './set-error.js';

/** Maximum length of a line, in bytes. A path of control characters takes six times its length. */
export const MAX_LINE_BYTES = 64 * 1024;

const NEWLINE = 0x0a;

/** Bytes in any pieces. */
export type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/**
 * Splits UTF-8 into lines, without their newlines; the last one may lack it. Holds one line. Throws SetError with the line
 * if it is longer than 64 KiB, not UTF-8, or ends with CR LF.
 */
export async function* readLines(pieces: Pieces): AsyncGenerator<string> {
  const begun = new Uint8Array(MAX_LINE_BYTES);
  let length = 0;
  let line = 1;
  for await (const piece of pieces) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
      checkLength(length + end - start, line);
      const rest = piece.subarray(start, end);
      if (length > 0) begun.set(rest, length);
      yield decode(length > 0 ? begun.subarray(0, length + rest.length) : rest, line);
      line += 1;
      length = 0;
      start = end + 1;
    }
    checkLength(length + piece.length - start, line);
    begun.set(piece.subarray(start), length);
    length += piece.length - start;
  }
  if (length > 0) yield decode(begun.subarray(0, length), line);
}

function checkLength(length: number, line: number): void {
  if (length <= MAX_LINE_BYTES) return;
  const message = `line ${line} is longer than ${MAX_LINE_BYTES / 1024} KiB: a set file has one entry a line`;
  throw new SetError('set.shape', message, { line });
}

function decode(bytes: Uint8Array, line: number): string {
  let text: string;
  try {
    text = fromUtf8(bytes);
  } catch {
    throw new SetError('set.shape', `line ${line} is not text in UTF-8`, { line });
  }
  if (text.endsWith('\r')) {
    throw new SetError('set.shape', `line ${line} ends with CR LF instead of LF`, { line });
  }
  return text;
}
