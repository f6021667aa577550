/** What has been started, in order, so that it can be stopped the other way round. */
export type Stops = {
  add(stop: () => Promise<unknown>): void;
  /** Stops everything, the last started first. One that fails does not keep the others from being stopped. */
  run(): Promise<void>;
};

/** Nothing to stop yet. */
export function createStops(): Stops {
  const started: (() => Promise<unknown>)[] = [];
  return {
    add: (stop) => started.push(stop),
    run: async () => {
      const failures: unknown[] = [];
      for (const stop of started.splice(0).reverse())
        await stop().catch((error: unknown) => failures.push(error));
      if (failures.length > 0) throw failures[0];
    },
  };
}

/** Runs something that starts things and ends; stops what it started, however it ends. */
export async function withStops<T>(run: (stops: Stops) => Promise<T>): Promise<T> {
  const stops = createStops();
  try {
    return await run(stops);
  } finally {
    await stops.run();
  }
}
