import type { Pool } from '../store/database/connect.js';
import { type DsseKey, listDsseKeys } from '../store/dsse-keys.js';
import { findActiveLog, type Log, listLogs } from '../store/log/logs.js';

/** The logs and signing keys there are: few, rarely new, looked up all the time. */
export type LogCache = {
  /** Every log as the tables were read last. */
  allLogs(): readonly Log[];
  getLog(id: number): Promise<Log>;
  /** The log an environment writes to now. */
  getActiveLog(environment: number): Promise<Log>;
  /** The logs that are written to now: the newest epoch of each environment. */
  activeLogs(): Promise<Log[]>;
  /** The ids of all logs of an environment, old epochs included. */
  logIds(environment: number): Promise<number[]>;
  getDsseKey(id: number): Promise<DsseKey>;
  /**
   * Reads the tables again. When they lack a log that they had, it is another database, as logs stay for good: what was
   * read of the one before stays known, and `findProblem` says so.
   */
  refresh(): Promise<void>;
  /** Why the tables cannot be those of this service; undefined while they can. */
  unreadyReason(): string | undefined;
};

/** A cache that reads the tables when asked for something it does not know, or to refresh. */
export async function openLogCache(pool: Pool): Promise<LogCache> {
  let logs = await listLogs(pool);
  let keys = await listDsseKeys(pool);
  let problem: string | undefined;
  const refresh = async () => {
    const found = await listLogs(pool);
    problem = findLost(logs, found);
    if (problem !== undefined) return;
    logs = found;
    keys = await listDsseKeys(pool);
  };
  const get = async <T>(find: () => T | undefined, what: string): Promise<T> => {
    const known = find();
    if (known !== undefined) return known;
    await refresh();
    const found = find();
    if (found === undefined) throw new Error(`there is no ${what}`);
    return found;
  };
  return {
    allLogs: () => logs,
    getLog: (id) => get(() => logs.find((log) => log.id === id), `log ${id}`),
    getActiveLog: (environment) =>
      get(() => findActiveLog(logs, environment), `log of environment ${environment}`),
    activeLogs: async () => logs.filter((log) => findActiveLog(logs, log.environment)?.id === log.id),
    logIds: async (environment) => logs.filter((log) => log.environment === environment).map((log) => log.id),
    getDsseKey: (id) => get(() => keys.find((key) => key.id === id), `DSSE key ${id}`),
    refresh,
    unreadyReason: () => problem,
  };
}

function findLost(known: readonly Log[], found: readonly Log[]): string | undefined {
  const lost = known.find(({ id, origin }) => !found.some((log) => log.id === id && log.origin === origin));
  return lost && `the database lacks the log ${lost.origin}, which it had: it is another database`;
}
