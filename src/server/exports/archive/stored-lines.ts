/** Lines of an object of an archive, as its manifest lists it. */
import { createHash } from 'node:crypto';
import type { ManifestObject } from '../../../proof/export/manifest-fields.js';
import type { OperatorStore } from '../destinations/operator-store.js';
import { ArchiveError } from './archive-error.js';
import { inflate, splitLines } from './object-lines.js';
import { readPieces } from './stored-objects.js';

/** Reads the lines of an object. Throws ArchiveError after the last one if it is not the object that the manifest lists. */
export async function* readObjectLines(
  storage: OperatorStore,
  { name, object, signal }: { name: string; object: ManifestObject; signal: AbortSignal },
): AsyncGenerator<string> {
  const hash = createHash('sha256');
  let bytes = 0;
  async function* stored() {
    for await (const piece of readPieces(storage, name, object.bytes + 1, signal)) {
      hash.update(piece);
      bytes += piece.length;
      yield piece;
    }
  }
  try {
    for await (const line of splitLines(inflate(stored(), () => bytes))) yield Buffer.from(line).toString();
  } catch (error) {
    throw error instanceof ArchiveError ? error : new ArchiveError(`${name}: ${(error as Error).message}`);
  }
  if (bytes !== object.bytes || hash.digest('hex') !== object.sha256)
    throw new ArchiveError(`${name} is not the object that its manifest lists: archive again`);
}

/** The first `count` lines of an object in chunks of whole lines, as they are. Reads and throws as `readObjectLines`. */
export async function* copyLines(
  storage: OperatorStore,
  from: { name: string; object: ManifestObject; signal: AbortSignal },
  count: number,
): AsyncGenerator<Uint8Array> {
  let copied = 0;
  for await (const line of readObjectLines(storage, from))
    if (copied++ < count) yield Buffer.from(`${line}\n`);
}
