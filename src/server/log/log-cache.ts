import type { Lookup } from '../core/lookup.js';
import type { Pool } from '../database/connect.js';
import { type DsseKey, listDsseKeys } from './store/dsse-keys.js';
import { findActiveLog, type Log, listLogs } from './store/logs.js';

/** The logs and DSSE keys, cached: few, rarely new, looked up by every request. */
export type LogCache = {
  /** Every log, as of the last reading. */
  allLogs(): readonly Log[];
  getLog(id: number): Promise<Log>;
  /** The log that an environment writes to: its newest epoch. */
  activeLog: Lookup<number, Log>;
  /** The newest epoch of each environment. */
  activeLogs(): Promise<Log[]>;
  /** The ids of an environment's logs, old epochs included. */
  logIds(environment: number): Promise<number[]>;
  getDsseKey(id: number): Promise<DsseKey>;
  /** All DSSE keys, as the tables had them at most so many milliseconds ago. */
  dsseKeys: Lookup<number, readonly DsseKey[]>;
  /**
   * Reads the tables again. If a cached log is missing, this is another database, since logs are never deleted: the
   * cache stays as it is and `unreadyReason` returns why.
   */
  refresh(): Promise<void>;
  /** Why the database cannot be this service's. Returns undefined if all is well. */
  unreadyReason(): string | undefined;
};

/**
 * Fills the cache. It reads the tables again on a cache miss; getters throw if the tables lack the id as well.
 *
 * @param monotonicMs monotonic milliseconds
 */
export async function openLogCache(pool: Pool, monotonicMs = () => performance.now()): Promise<LogCache> {
  let readMs = monotonicMs();
  let logs = await listLogs(pool);
  let active = activeLogsOf(logs);
  let keys = await listDsseKeys(pool);
  let reason: string | undefined;
  const refresh = async () => {
    const startedMs = monotonicMs();
    const found = await listLogs(pool);
    reason = findMissing(logs, found);
    if (reason !== undefined) return;
    logs = found;
    active = activeLogsOf(found);
    keys = await listDsseKeys(pool);
    readMs = startedMs;
  };
  const get = async <T>(find: () => T | undefined, name: string): Promise<T> => {
    const known = find();
    if (known !== undefined) return known;
    await refresh();
    const found = find();
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found;
  };
  return {
    allLogs: () => logs,
    getLog: (id) => get(() => logs.find((log) => log.id === id), `log ${id}`),
    activeLog: {
      peek: (environment) => active.get(environment),
      get: (environment) => get(() => active.get(environment), `log of environment ${environment}`),
    },
    activeLogs: async () => [...active.values()],
    logIds: async (environment) => logs.filter((log) => log.environment === environment).map((log) => log.id),
    getDsseKey: (id) => get(() => keys.find((key) => key.id === id), `DSSE key ${id}`),
    dsseKeys: {
      peek: (maxAgeMs) => (monotonicMs() - readMs > maxAgeMs ? undefined : keys),
      get: async (maxAgeMs) => {
        if (monotonicMs() - readMs > maxAgeMs) await refresh();
        return keys;
      },
    },
    refresh,
    unreadyReason: () => reason,
  };
}

/** The newest epoch of each environment, by environment. */
function activeLogsOf(logs: readonly Log[]): ReadonlyMap<number, Log> {
  return new Map(logs.map((log) => [log.environment, findActiveLog(logs, log.environment) ?? log]));
}

function findMissing(known: readonly Log[], found: readonly Log[]): string | undefined {
  const missing = known.find(
    ({ id, origin }) => !found.some((log) => log.id === id && log.origin === origin),
  );
  return missing && `the database lacks the log ${missing.origin}, which it had: it is another database`;
}
