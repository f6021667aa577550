/** Bytes of an index entry: 7 of the artifact's hash, 4 of the project id's hash, 5 of the log index. */
export const ENTRY_BYTES = 16;

/**
 * The entries of a run that a step of a merge has read, in order. `hasMore`: the run has further entries behind them.
 */
export type RunSlice = { entries: Uint8Array; hasMore: boolean };

/**
 * Merges what the slices hold of one sorted sequence: all their entries after `after`, up to the first one that may
 * lack entries of another slice before it.
 *
 * @param after the last entry that was merged, empty at first
 * @returns the entries in the order of their bytes; at least one if any slice has one after `after`
 */
export function mergeEntries(slices: readonly RunSlice[], after: Uint8Array): Buffer {
  const ends = slices.filter(({ hasMore }) => hasMore).map(({ entries }) => lastEntry(entries));
  const through = ends.reduce<Buffer | undefined>(
    (least, end) => (least === undefined || end.compare(least) < 0 ? end : least),
    undefined,
  );
  let sorted: Buffer[] = slices.map(({ entries }) => cut(asBuffer(entries), after, through));
  while (sorted.length > 1) {
    const pairs: Buffer[] = [];
    for (let i = 0; i < sorted.length; i += 2) pairs.push(mergeTwo(sorted[i], sorted[i + 1]));
    sorted = pairs;
  }
  return sorted[0] ?? Buffer.alloc(0);
}

/** The last entry of a sorted sequence; empty if it has none. */
export function lastEntry(entries: Uint8Array): Buffer {
  return asBuffer(entries).subarray(-ENTRY_BYTES);
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** The entries after `after` and up to `through`. */
function cut(entries: Buffer, after: Uint8Array, through: Buffer | undefined): Buffer {
  const first = countThrough(entries, after);
  const end = through === undefined ? entries.length / ENTRY_BYTES : countThrough(entries, through);
  return entries.subarray(first * ENTRY_BYTES, Math.max(first, end) * ENTRY_BYTES);
}

/** The number of entries that are not after `bound`. */
function countThrough(entries: Buffer, bound: Uint8Array): number {
  let low = 0;
  let high = entries.length / ENTRY_BYTES;
  while (low < high) {
    const middle = (low + high) >> 1;
    const at = middle * ENTRY_BYTES;
    if (entries.compare(bound, 0, bound.length, at, at + ENTRY_BYTES) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function mergeTwo(one: Buffer = Buffer.alloc(0), other: Buffer = Buffer.alloc(0)): Buffer {
  const merged = Buffer.allocUnsafe(one.length + other.length);
  let [i, j, end] = [0, 0, 0];
  while (i < one.length && j < other.length) {
    if (isBefore(one, i, other, j)) {
      one.copy(merged, end, i, i + ENTRY_BYTES);
      i += ENTRY_BYTES;
    } else {
      other.copy(merged, end, j, j + ENTRY_BYTES);
      j += ENTRY_BYTES;
    }
    end += ENTRY_BYTES;
  }
  end += one.copy(merged, end, i);
  other.copy(merged, end, j);
  return merged;
}

function isBefore(one: Buffer, i: number, other: Buffer, j: number): boolean {
  return one.compare(other, j, j + ENTRY_BYTES, i, i + ENTRY_BYTES) < 0;
}
