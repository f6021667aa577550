import { LRUCache } from 'lru-cache';
import type { Lookup } from '../core/lookup.js';
import type { Principal } from '../core/principal.js';
import type { Pool } from '../database/connect.js';
import { type DsseKey, listDsseKeys } from './store/dsse-keys.js';
import { findProjectLane } from './store/lanes.js';
import { findActiveLogs, type Log, listLogs } from './store/logs.js';

const LANES_CACHED = 10_000;

/** Whose log is looked up. */
export type LogOwner = Pick<Principal, 'projectId' | 'environment'>;

/** The logs and DSSE keys, cached: few, rarely new, looked up by every request. */
export type LogCache = {
  /** Every log, as of the last reading. */
  allLogs(): readonly Log[];
  getLog(id: number): Promise<Log>;
  /** The log that a project's submissions go to: the newest epoch of its lane. */
  activeLog: Lookup<LogOwner, Log>;
  /** The newest epoch of each lane. */
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
  let active = findActiveLogs(logs);
  let keys = await listDsseKeys(pool);
  let reason: string | undefined;
  // A project's lane never changes.
  const lanes = new LRUCache<string, number>({ max: LANES_CACHED });
  const findActive = ({ environment }: LogOwner, lane: number) =>
    active.find((log) => log.environment === environment && log.lane === lane);
  const refresh = async () => {
    const startedMs = monotonicMs();
    const found = await listLogs(pool);
    reason = findMissing(logs, found);
    if (reason !== undefined) return;
    logs = found;
    active = findActiveLogs(found);
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
      peek: (owner) => {
        const lane = lanes.get(keyOf(owner));
        return lane === undefined ? undefined : findActive(owner, lane);
      },
      get: async (owner) => {
        const lane = lanes.get(keyOf(owner)) ?? (await findProjectLane(pool, owner));
        lanes.set(keyOf(owner), lane);
        return get(() => findActive(owner, lane), `log of lane ${lane}`);
      },
    },
    activeLogs: async () => [...active],
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

const keyOf = ({ projectId, environment }: LogOwner) => `${environment} ${projectId}`;

function findMissing(known: readonly Log[], found: readonly Log[]): string | undefined {
  const missing = known.find(
    ({ id, origin }) => !found.some((log) => log.id === id && log.origin === origin),
  );
  return missing && `the database lacks the log ${missing.origin}, which it had: it is another database`;
}
