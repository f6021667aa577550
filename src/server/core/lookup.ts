/**
 * A look-up for every request, of values that hardly ever change. `known` returns the cached value of this process while
 * that is valid, else undefined; then `find` is awaited. Most promises of a call would be those of such look-ups.
 */
export type Lookup<K, V> = {
  known(key: K): V | undefined;
  find(key: K): Promise<V>;
};
