/**
 * A cached look-up of values that hardly ever change. `peek` returns the cached value while it is valid, else undefined;
 * `get` reads it anew then. `peek(key) ?? (await get(key))` saves a promise for each request.
 */
export type Lookup<K, V> = {
  peek(key: K): V | undefined;
  get(key: K): Promise<V>;
};
