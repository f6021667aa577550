/** Races conditional writes against each other: in a store that is safe to share, at most one of them is stored. */
import { randomBytes } from 'node:crypto';
import { bytesObject } from './bytes-object.js';
import { revisionMetadata } from './compare-and-swap.js';
import { DestinationError } from './destination.js';
import type { ObjectStore } from './object-store.js';

const ROUNDS = 10;
const WRITERS = 8;

/**
 * Writes an object that is not there yet, then over it, each time by eight writers at once on the same condition. Rejects
 * with `DestinationError` if two of them succeed, or if the store then holds another object than the winner's.
 *
 * @returns the number of races
 */
export async function raceWrites(store: ObjectStore, name: string, signal: AbortSignal): Promise<number> {
  for (let round = 1; round <= ROUNDS; round++) {
    const before = await store.read(name, signal);
    const objects = Array.from({ length: WRITERS }, () =>
      bytesObject({
        name,
        content: randomBytes(64),
        contentType: 'application/octet-stream',
        revision: round,
      }),
    );
    const stored = await Promise.all(objects.map((object) => store.write(object, before, signal)));
    const winners = objects.filter((_, i) => stored[i]);
    if (winners.length > 1) throw new DestinationError(lost(`${winners.length} of ${WRITERS} writers`, name));
    const [winner] = winners;
    const after = await store.read(name, signal);
    if (winner !== undefined && after?.sha256 !== revisionMetadata(winner).sha256)
      throw new DestinationError(lost('a writer whose object is not there', name));
  }
  return ROUNDS;
}

function lost(who: string, name: string): string {
  return `conditional writes (If-Match, If-None-Match) lose races: ${who} wrote ${name} on the same condition; use another store`;
}
