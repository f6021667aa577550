import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import type { ExportObject } from './object-store.js';

/** The MD5 of an object's bytes, or of a range of them, for stores that check it against what arrives. */
export async function contentMd5(
  object: ExportObject,
  signal: AbortSignal,
  range = { start: 0, end: object.bytes },
): Promise<Buffer> {
  const hash = createHash('md5');
  await pipeline(object.read(range), hash, { signal });
  return hash.digest();
}
