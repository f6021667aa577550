/** The probe of a store of objects: whether it takes objects, lets them be overwritten and honours conditions. */
import { bytesObject } from './bytes-object.js';
import { revisionMetadata } from './compare-and-swap.js';
import { type DestinationContext, DestinationError } from './destination.js';
import type { ExportObject, ObjectStore, Stored } from './object-store.js';

/** Maximum attempts of a probe while other probes are faster. */
const MAX_TRIES = 5;

/** The name of an export's probe: `<prefix>/<export id>/probe`. */
export function probeName({ destination: { prefix }, exportId }: DestinationContext): string {
  return [prefix, exportId, 'probe'].filter((segment) => segment !== '').join('/');
}

/**
 * Writes a probe, reads it, overwrites it, and checks that writes on a condition that does not hold are refused. Rejects
 * with `DestinationError` if the store fails in any of that.
 */
export async function probeStore(store: ObjectStore, name: string, signal: AbortSignal): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const found = await store.read(name, signal);
    const first = makeProbe(name, (found?.revision ?? 0) + 1);
    if (!(await store.write(first, found, signal))) continue;
    const written = await store.read(name, signal);
    if (written === undefined || !isSame(written, first)) continue;
    const second = makeProbe(name, first.revision + 1);
    if (!(await store.write(second, written, signal))) continue;
    return await refuseStale(store, { name, written, revision: second.revision + 1 }, signal);
  }
  throw new DestinationError(`the store does not return ${name} as it was written; use another store`);
}

/** Another write between is no harm: the conditions do not hold then either. */
async function refuseStale(
  store: ObjectStore,
  { name, written, revision }: { name: string; written: Stored; revision: number },
  signal: AbortSignal,
): Promise<void> {
  for (const stale of [written, undefined]) {
    if (!(await store.write(makeProbe(name, revision), stale, signal))) continue;
    throw new DestinationError(
      'the store ignores conditions of writes (If-Match and the like); use another store',
    );
  }
}

function isSame(stored: Stored, probe: ExportObject): boolean {
  return stored.revision === probe.revision && stored.sha256 === revisionMetadata(probe).sha256;
}

/** Contents differ by revision, because some stores derive the version of an object from its content. */
function makeProbe(name: string, revision: number): ExportObject {
  return bytesObject({ name, content: `{"probe":${revision}}\n`, contentType: 'application/json', revision });
}
