import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ExportObject } from './object-store.js';

/** An object whose bytes are in memory. */
export function bytesObject({
  content,
  ...described
}: Pick<ExportObject, 'name' | 'contentType' | 'cacheControl' | 'revision'> & {
  content: Uint8Array | string;
}): ExportObject {
  const bytes = Buffer.from(content as Uint8Array);
  return {
    ...described,
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest(),
    read: ({ start, end } = { start: 0, end: bytes.length }) =>
      Readable.from([bytes.subarray(start, end)], { objectMode: false }),
  };
}
