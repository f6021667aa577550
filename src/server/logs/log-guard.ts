import { unavailable } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import { type AcknowledgedLeaves, checkAcknowledged } from '../pipeline/acknowledged.js';
import { checkRegister, type Register } from '../pipeline/register/register.js';
import type { Pool } from '../store/database/connect.js';
import { findUnsafeSetting } from '../store/database/session.js';
import type { Log } from '../store/log/logs.js';
import type { LogCache } from './log-cache.js';

/** Keeps a process from writing to a database that is not, or no longer, the one that has all. */
export type LogGuard = {
  /** Told that a connection of the pool that writes was lost: what answers next may be another database. */
  onConnectionLost(): void;
  /**
   * Checks the log at first and once after each loss; throws, and freezes the log, when the database lacks what was
   * published or acknowledged. It asks over the pool that writes, so that there is a connection whose loss is noticed.
   */
  assertWritable(pool: Pool, logId: number): Promise<void>;
  /**
   * Checks all logs that are written to, and whether the server keeps what it confirms, whether anybody writes or not;
   * what it finds, the log lines say.
   */
  checkLogs(pool: Pool): Promise<void>;
  /** Why nothing is taken though no log is frozen, for this process's operator; undefined when all is. */
  unreadyReason(): string | undefined;
};

const FROZEN_RETRY_SECONDS = 60;
const UNSAFE_RETRY_SECONDS = 5;
const UNSAFE = 'the database would not keep what is acknowledged';

/** A guard that has not checked any log yet. */
export function createLogGuard(
  register: Register,
  acknowledged: AcknowledgedLeaves,
  logCache: LogCache,
  log: Logger,
): LogGuard {
  let losses = 0;
  let unsafe: string | undefined;
  const checkedAt = new Map<number, number>();
  const findContradiction = async (pool: Pool, row: Log): Promise<string | undefined> => {
    const comparison = await checkRegister({ pool, register, log }, row);
    if (comparison.state === 'fork') return comparison.reason;
    return checkAcknowledged({ pool, acknowledged, log }, row);
  };
  const check = async (pool: Pool, row: Log): Promise<string | undefined> => {
    const seen = losses;
    const contradiction = await findContradiction(pool, row);
    // After a contradiction nothing is written unchecked, be it that the log could not be frozen.
    if (contradiction === undefined) checkedAt.set(row.id, seen);
    else checkedAt.delete(row.id);
    return contradiction;
  };
  return {
    onConnectionLost: () => {
      losses++;
    },
    assertWritable: async (pool, logId) => {
      if (unsafe !== undefined) throw unavailable(UNSAFE, UNSAFE_RETRY_SECONDS, new Error(unsafe));
      if (checkedAt.get(logId) === losses) return;
      const contradiction = await check(pool, await logCache.getLog(logId));
      if (contradiction !== undefined) {
        throw unavailable(`the log is frozen: ${contradiction}`, FROZEN_RETRY_SECONDS);
      }
    },
    checkLogs: async (pool) => {
      const found = await findUnsafeSetting(pool);
      if (found !== undefined && unsafe === undefined) log.error({ reason: found }, 'nothing is taken');
      unsafe = found;
      for (const row of await logCache.activeLogs()) {
        if (row.frozenAt === null) await check(pool, row);
      }
    },
    unreadyReason: () => unsafe,
  };
}
