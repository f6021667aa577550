/** Reads one report, and what it is attested by. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { UsageError } from '../../cli.js';
import { errnoReason, inputFileSize } from '../../input/input-file.js';
import { openXmlDecoder } from './decode-xml.js';
import { type JUnitHandler, openJUnitParser } from './parse-junit.js';

/** A report as it was read: SHA-256 in hex, and length. */
export type ReadReport = { readonly file: string; readonly sha256: string; readonly bytes: number };

/** Takes 15 s. */
const MAX_BYTES = 1024 ** 3;

/**
 * Reads a report once, in pieces: what is hashed is what is parsed. `onBytes` is called with the length of each piece. Throws
 * UsageError, with file and line, if it cannot be read or is no report.
 */
export async function readReport(
  file: string,
  handler: JUnitHandler,
  { onBytes, signal }: { onBytes: (bytes: number) => void; signal: AbortSignal },
): Promise<ReadReport> {
  if ((await inputFileSize(file)) > MAX_BYTES)
    throw new UsageError(`${file} is too large for a report: over 1 GiB`);
  const parser = openJUnitParser(file, handler);
  const hash = createHash('sha256');
  let decoder: ReturnType<typeof openXmlDecoder> | undefined;
  let bytes = 0;
  for await (const piece of readPieces(file, signal)) {
    decoder ??= openXmlDecoder(file, piece);
    hash.update(piece);
    parser.write(decoder.decode(piece));
    bytes += piece.length;
    onBytes(piece.length);
  }
  if (decoder !== undefined) parser.write(decoder.decode());
  parser.end();
  return { file, sha256: hash.digest('hex'), bytes };
}

async function* readPieces(file: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file, { signal, end: MAX_BYTES });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new UsageError(`${file} cannot be read: ${errnoReason(error as Error)}`);
  }
}
