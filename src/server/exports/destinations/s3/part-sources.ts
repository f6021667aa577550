/** The parts of an upload, of a whole object or of one that is still being rendered. */
import { createHash, hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createSerialQueue } from '../../../core/serial-queue.js';
import { DestinationError, type StreamedObject } from '../destination.js';
import type { ExportObject } from '../object-store.js';
import { SourceError } from './error.js';

/** A part with its SHA-256 in base64. */
export type Part = { number: number; bytes: number; body: Buffer | Readable; checksum: string };

/**
 * Returns the next part, in `buffer` if there is one, which must not change until the part is confirmed; undefined after the
 * last. Rejects with `SourceError` if the object cannot be read, and with the reason of `signal`.
 */
export type PartSource = (buffer: Buffer | undefined, signal: AbortSignal) => Promise<Part | undefined>;

/** Maximum number of parts of an upload. */
export const MAX_PARTS = 10_000;

/** The parts of a whole object. Those without a buffer are streamed, and read twice: their checksum is sent first. */
export function partsOfWhole(object: ExportObject, partBytes: number): PartSource {
  let parts = 0;
  return async (buffer, signal) => {
    const start = parts * partBytes;
    const bytes = Math.min(partBytes, object.bytes - start);
    if (bytes <= 0) return undefined;
    const number = ++parts;
    if (buffer === undefined || object.fill === undefined) {
      const range = { start, end: start + bytes };
      const checksum = await hashStream(object.read(range), signal);
      return { number, bytes, body: object.read(range), checksum };
    }
    const body = buffer.subarray(0, bytes);
    await object.fill(body, start).catch(failedSource);
    return { number, bytes, body, checksum: hash('sha256', body, 'base64') };
  };
}

/** The parts of an object that is still being rendered. Each needs a buffer of one part. */
export function partsOfStreamed(object: Pick<StreamedObject, 'readPart'>): PartSource {
  let parts = 0;
  const queue = createSerialQueue();
  return async (buffer) => {
    if (buffer === undefined) throw new Error('a part that is still being rendered has no buffer');
    const number = ++parts;
    const { bytes, sha256 } = await queue(() => object.readPart(buffer)).catch(failedSource);
    if (bytes === 0) return undefined;
    if (number > MAX_PARTS)
      throw new DestinationError('the object is too large for the store; use compression');
    const checksum = Buffer.from(sha256).toString('base64');
    return { number, bytes, body: buffer.subarray(0, bytes), checksum };
  };
}

async function hashStream(stream: Readable, signal: AbortSignal): Promise<string> {
  const sha256 = createHash('sha256');
  await pipeline(stream, sha256, { signal }).catch((cause: unknown) => {
    signal.throwIfAborted();
    failedSource(cause);
  });
  return sha256.digest('base64');
}

function failedSource(cause: unknown): never {
  throw new SourceError('', { cause });
}
