/** The logs that are followed, as the newest trust roots have them. */
import type { AuditEvents } from './output/audit-events.js';
import type { WatchedLog } from './watched-log.js';

/** The logs now, and how to read the trust roots again: undefined if they are the same as before. */
export type Refresh = {
  readonly logs: readonly WatchedLog[];
  readonly read: () => Promise<readonly WatchedLog[] | undefined>;
};

/** The list. */
export type WatchList = {
  all(): readonly WatchedLog[];
  /** Reads the trust roots again; returns whether they have changed. */
  refresh(): Promise<boolean>;
  /** Does so if the last time is ten minutes ago. */
  refreshIfDue(): Promise<void>;
};

const REFRESH_MS = 600_000;

/** Opens the list. Trust roots that cannot be read are reported, and those of before remain. */
export function openWatchList(
  { now, events }: { now: () => Date; events: AuditEvents },
  { logs: first, read }: Refresh,
): WatchList {
  let logs = first;
  let readAt = now().getTime();
  const refresh = async () => {
    readAt = now().getTime();
    const found = await read().catch((error: Error) => {
      events.trouble('trust roots', error.message);
      return undefined;
    });
    logs = found ?? logs;
    return found !== undefined;
  };
  return {
    all: () => logs,
    refresh,
    refreshIfDue: async () => {
      if (now().getTime() - readAt >= REFRESH_MS) await refresh();
    },
  };
}
