/** Random numbers that a seed determines, so that a campaign can be had again. */
import { createHash } from 'node:crypto';

export type Random = {
  /** From 0 up to, not including, 1. */
  fraction(): number;
  /** A whole number from 0 up to, not including, `end`. */
  below(end: number): number;
  /** A whole number from `low` to `high`, both possible. */
  between(low: number, high: number): number;
  pick<T>(list: readonly T[]): T;
  /** The same members in another order. */
  shuffle<T>(list: readonly T[]): T[];
  /** Numbers of its own, which what is drawn here does not change. */
  fork(name: string): Random;
};

/** The generator sfc32 (Chris Doty-Humphrey), its state from SHA-256 of the seed. */
export function createRandom(seed: string): Random {
  const digest = createHash('sha256').update(seed).digest();
  let a = digest.readInt32LE(0);
  let b = digest.readInt32LE(4);
  let c = digest.readInt32LE(8);
  let counter = digest.readInt32LE(12);
  const fraction = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  const below = (end: number) => Math.floor(fraction() * end);
  const shuffle = <T>(list: readonly T[]): T[] => {
    const mixed = [...list];
    for (let i = mixed.length - 1; i > 0; i--) {
      const j = below(i + 1);
      [mixed[i], mixed[j]] = [mixed[j]!, mixed[i]!];
    }
    return mixed;
  };
  return {
    fraction,
    below,
    between: (low, high) => low + below(high - low + 1),
    pick: (list) => {
      if (list.length === 0) throw new Error('there is nothing to pick from');
      return list[below(list.length)]!;
    },
    shuffle,
    fork: (name) => createRandom(`${seed}/${name}`),
  };
}
