/**
 * Writes an object to a store of objects over an older revision of itself only. The revision and the SHA-256 are in the
 * object's metadata, and each write is on the condition that the stored object is unchanged since it was read.
 */
import { DestinationError, type WriteControl, type WriteOutcome } from './destination.js';
import type { ExportObject, ObjectStore, Stored } from './object-store.js';

/** Maximum attempts of a write while other writers are faster. */
const MAX_TRIES = 5;

/** The user metadata that `write` stores with an object. */
export function revisionMetadata({ revision, sha256 }: Pick<ExportObject, 'revision' | 'sha256'>): {
  revision: string;
  sha256: string;
} {
  return { revision: String(revision), sha256: Buffer.from(sha256).toString('hex') };
}

/** Reads the user metadata of an object that anybody may have written. */
export function parseRevision(metadata: Readonly<Record<string, unknown>>): Omit<Stored, 'version'> {
  const { revision, sha256 } = metadata;
  const isRevision = typeof revision === 'string' && /^[1-9][0-9]{0,14}$/.test(revision);
  return {
    revision: isRevision ? Number(revision) : undefined,
    sha256: typeof sha256 === 'string' ? sha256 : undefined,
  };
}

/** Writes an object by compare and swap; see `OpenDestination.write`. */
export async function writeNewer(
  store: ObjectStore,
  object: ExportObject,
  { signal, isCurrent }: WriteControl,
): Promise<WriteOutcome> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = await store.read(object.name, signal);
    const outcome = compare(stored, object);
    if (outcome !== undefined) return outcome;
    if (!(await isCurrent())) return { outcome: 'superseded', revision: undefined };
    if (await store.write(object, stored, signal)) return { outcome: 'written' };
  }
  throw new DestinationError(`another writer keeps changing ${object.name}; let nobody else write there`);
}

/** The outcome if the stored object is this one or a later one; undefined if the object has to be written. */
function compare(stored: Stored | undefined, object: ExportObject): WriteOutcome | undefined {
  if (stored?.revision === undefined || stored.revision < object.revision) return undefined;
  const isSame = stored.revision === object.revision && stored.sha256 === revisionMetadata(object).sha256;
  return isSame ? { outcome: 'written' } : { outcome: 'superseded', revision: stored.revision };
}
