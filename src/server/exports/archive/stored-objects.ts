/** Objects of an archive: written on the condition of what is there, and read in pieces. */
import { createHash } from 'node:crypto';
import { FormatError } from '../../../proof/bytes/format-error.js';
import type { ManifestFields } from '../../../proof/export/manifest-fields.js';
import { MAX_MANIFEST_BYTES, readManifest } from '../../../proof/export/read-manifest.js';
import type { ExportObject } from '../destinations/object-store.js';
import type { OperatorStore } from '../destinations/operator-store.js';
import { ArchiveError } from './archive-error.js';

/** Bytes of one request, below what clients of stores take as an answer, and requests at once. */
const PIECE = 192 * 1024;
const AHEAD = 8;

/** Reads an object in pieces, several ahead. Ends where the object does, after `most` bytes at the latest. */
export async function* readPieces(
  { store, nameOf }: OperatorStore,
  name: string,
  most: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const open = (start: number) => {
    const reading = store.readBytes(nameOf(name), { start, end: Math.min(start + PIECE, most) }, signal);
    reading.catch(() => {});
    return { start, reading };
  };
  const ahead = [open(0)];
  for (let next = PIECE; ahead.length > 0; ) {
    const { start, reading } = ahead.shift() as (typeof ahead)[number];
    const piece = await reading;
    if (piece === undefined) {
      if (start === 0) throw new ArchiveError(`the object ${name} is missing`);
      return;
    }
    if (piece.length > 0) yield piece;
    if (piece.length < PIECE) return;
    for (; ahead.length < AHEAD && next < most; next += PIECE) ahead.push(open(next));
  }
}

/** Reads a small object whole, with its version; undefined if there is none. */
export async function readWhole(storage: OperatorStore, name: string, signal: AbortSignal) {
  const stored = await storage.store.read(storage.nameOf(name), signal);
  if (stored === undefined) return undefined;
  const pieces: Uint8Array[] = [];
  for await (const piece of readPieces(storage, name, MAX_MANIFEST_BYTES, signal)) pieces.push(piece);
  const bytes = Buffer.concat(pieces);
  return { version: stored.version, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** A manifest as it is stored. */
export type StoredManifest = {
  readonly version: string;
  readonly sha256: string;
  readonly fields: ManifestFields;
  readonly statement: Uint8Array;
};

/** Reads the manifest of a name; undefined if there is none. Verifies no signature. Throws ArchiveError if it is of another archive. */
export async function findManifest(
  storage: OperatorStore,
  name: string,
  origin: string,
  signal: AbortSignal,
): Promise<StoredManifest | undefined> {
  const found = await readWhole(storage, name, signal);
  if (found === undefined) return undefined;
  const { version, sha256, bytes } = found;
  try {
    const { fields, statement } = readManifest(bytes);
    if (fields.project === null && fields.exportId === origin) return { version, sha256, fields, statement };
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw new ArchiveError(`${storage.location(name)}: ${error.message}`);
  }
  throw new ArchiveError(`${storage.location(name)} is the manifest of something else`);
}

/** Writes an object, named below the prefix of the store, over the version that was read. Throws ArchiveError if another process wrote meanwhile. */
export async function putObject(
  { store, nameOf, location }: OperatorStore,
  object: ExportObject,
  over: { version: string } | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (await store.write({ ...object, name: nameOf(object.name) }, over, signal)) return;
  throw new ArchiveError(`another process writes ${location(object.name)}: archive once it is done`);
}
