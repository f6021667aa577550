import type { OpenDestination } from './destination.js';
import type { StoredDestination } from './stored-destination.js';

/** The destinations of exports, opened on first use and closed when they have not been used for a while. */
export type Destinations = {
  /** Calls `run` with an export's destination. Rejects with `DestinationError` if it cannot be opened. */
  use<T>(row: StoredExport, run: (destination: OpenDestination) => Promise<T>): Promise<T>;
  /** Closes all. Call it when none is in use. */
  close(): Promise<void>;
};

/** The columns that determine an export's destination. */
type StoredExport = StoredDestination & { projectId: string };

/** Idle time before a destination is closed: a little longer than the pause between two batches. */
const IDLE_MS = 60_000;

type Entry = { opening: Promise<OpenDestination>; users: number; idle: NodeJS.Timeout | undefined };

/** Creates the cache of open destinations. */
export function createDestinations(open: (row: StoredExport) => Promise<OpenDestination>): Destinations {
  const entries = new Map<string, Entry>();
  const drop = async (id: string, entry: Entry) => {
    clearTimeout(entry.idle);
    if (entries.get(id) === entry) entries.delete(id);
    await entry.opening.then((destination) => destination.close()).catch(() => {});
  };
  const enter = (row: StoredExport): Entry => {
    const entry = entries.get(row.id) ?? { opening: open(row), users: 0, idle: undefined };
    entries.set(row.id, entry);
    clearTimeout(entry.idle);
    entry.users++;
    return entry;
  };
  return {
    async use(row, run) {
      const entry = enter(row);
      try {
        return await run(await entry.opening);
      } catch (error) {
        // The next use opens it anew: credentials or addresses may have changed.
        if (entries.get(row.id) === entry) entries.delete(row.id);
        throw error;
      } finally {
        entry.users--;
        if (entry.users === 0) {
          if (entries.get(row.id) === entry)
            entry.idle = setTimeout(() => void drop(row.id, entry), IDLE_MS).unref();
          else await drop(row.id, entry);
        }
      }
    },
    async close() {
      await Promise.all([...entries].map(([id, entry]) => drop(id, entry)));
    },
  };
}
