/**
 * A value that is at hand, or a promise of it. Most reads wait for nothing, and then the promises of the steps they go
 * through would take longer than the steps.
 */
export type Soon<T> = T | Promise<T>;

/** Goes on with a value, at once when it is at hand. */
export function andThen<T, R>(value: Soon<T>, next: (value: T) => Soon<R>): Soon<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Does some work, and what is to be done should it fail, at once or later. */
export function recover<T>(work: () => Soon<T>, onError: (error: unknown) => Soon<T>): Soon<T> {
  try {
    const value = work();
    return value instanceof Promise ? value.catch(onError) : value;
  } catch (error) {
    return onError(error);
  }
}
