/** Remembers results of pure computations that the bundles of a batch repeat: those of their checkpoints and witnesses. */

/** Returns the result for this key, computed at most once while it is remembered. */
export type Memo<T> = (key: string, compute: () => Promise<T>) => Promise<T>;

/**
 * Creates a memo that forgets the oldest keys once all together are longer than `maxCharacters`. Keys must contain
 * everything that the result depends on.
 */
export function createMemo<T>(maxCharacters: number): Memo<T> {
  const results = new Map<string, Promise<T>>();
  let characters = 0;
  return (key, compute) => {
    const known = results.get(key);
    if (known !== undefined) return known;
    const result = compute();
    results.set(key, result);
    characters += key.length;
    for (const oldest of results.keys()) {
      if (characters <= maxCharacters) break;
      results.delete(oldest);
      characters -= oldest.length;
    }
    return result;
  };
}
