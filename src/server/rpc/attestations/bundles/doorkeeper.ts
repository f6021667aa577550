/** More than the cache of bundles holds: an older read would find its bundle evicted all the same. */
const SLOTS = 4_096;

/** Whether a leaf was asked for lately, and remembers that it was. */
type Doorkeeper = (logIndex: number) => boolean;

/**
 * Creates what admits a leaf's bundle to a cache, as the doorkeeper of TinyLFU does (Einziger et al., 2017): the second time
 * that it is asked for. Most bundles are read once, and one that is cached until it is evicted lives long enough to be moved
 * to the old generation of the heap: if each is cached at once, a bundle that is read once takes the process 100 µs, not 75.
 */
export function createDoorkeeper(): Doorkeeper {
  const last = new Float64Array(SLOTS).fill(-1);
  return (logIndex) => {
    const slot = logIndex % SLOTS;
    if (last[slot] === logIndex) return true;
    last[slot] = logIndex;
    return false;
  };
}
