/** Functions to run at shutdown, in the order in which their parts were started. */
export type ShutdownHooks = {
  add(stop: () => Promise<unknown>): void;
  /** Stops everything, the last started first. If one fails, the others are stopped nevertheless; throws its error. */
  run(): Promise<void>;
};

/** Returns an empty list of hooks. */
export function createShutdownHooks(): ShutdownHooks {
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

/** Runs `run`, then its hooks, also if it throws. */
export async function withShutdownHooks<T>(run: (hooks: ShutdownHooks) => Promise<T>): Promise<T> {
  const hooks = createShutdownHooks();
  try {
    return await run(hooks);
  } finally {
    await hooks.run();
  }
}

/** Resolves when the signal aborts, at once if it has. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
