/**
 * What is looked up for every request and hardly ever changes. `known` returns what this process has in memory while that
 * is valid, else undefined; then `find` is awaited. Most promises of a call would be those of such look-ups.
 */
export type Lookup<K, V> = {
  known(key: K): V | undefined;
  find(key: K): Promise<V>;
};
