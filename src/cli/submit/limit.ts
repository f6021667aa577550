/** Runs work as soon as fewer than so many others run. */
export type Limit = <T>(work: () => Promise<T>) => Promise<T>;

/** Creates a limit of `most` at a time; those that wait begin in their order. */
export function createLimit(most: number): Limit {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running === most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
