/**
 * A value that is known now, or later. What is usually cached is returned so: a create passes a dozen look-ups, and a
 * promise for each would cost more than the look-ups.
 */
export type Soon<T> = T | Promise<T>;

/** Continues with a value, at once if it is known. */
export function whenKnown<T, R>(value: Soon<T>, next: (value: T) => Soon<R>): Soon<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
