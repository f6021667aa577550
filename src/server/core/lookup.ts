/**
 * What is looked up for every request and hardly ever changes. `known` returns what this process has in memory while that
 * is valid, else undefined; then `find` has to be awaited. A promise for each look-up of a call is what most of its time
 * outside of computing goes to.
 */
export type Lookup<K, V> = {
  known(key: K): V | undefined;
  find(key: K): Promise<V>;
};
