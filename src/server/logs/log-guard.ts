import { unavailable } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import { type AcknowledgedLeaves, checkAcknowledged } from '../pipeline/acknowledged.js';
import { checkRegister, type Register } from '../pipeline/register/register.js';
import type { Pool } from '../store/database/connect.js';
import { findUnsafeSetting } from '../store/database/session.js';
import type { Log } from '../store/log/logs.js';
import type { LogCache } from './log-cache.js';

/** Prevents writes to a database that lacks published or acknowledged leaves, such as an old copy. */
export type LogGuard = {
  /** To be called when the write pool loses a connection: the next one may reach another database. */
  onConnectionLost(): void;
  /**
   * Checks the log before its first write and after each lost connection. Throws `service.unavailable`, and freezes the
   * log, if the database lacks published or acknowledged leaves. Uses the write pool, so that a connection is open whose
   * loss is noticed.
   */
  assertWritable(pool: Pool, logId: number): Promise<void>;
  /** Checks all active logs, and that the server's settings make commits durable. Logs what it finds. */
  checkLogs(pool: Pool): Promise<void>;
  /** Why no submission is accepted although no log is frozen. Returns undefined if submissions are accepted. */
  unreadyReason(): string | undefined;
};

const FROZEN_RETRY_SECONDS = 60;
const UNSAFE_RETRY_SECONDS = 5;
const UNSAFE = 'the database would not keep what is acknowledged';

/** Returns a guard that has checked no log yet. */
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
    // After a contradiction every write is checked, in case the log could not be frozen.
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
      if (found !== undefined && unsafe === undefined)
        log.error({ reason: found }, 'no submission is accepted');
      unsafe = found;
      for (const row of await logCache.activeLogs()) {
        if (row.frozenAt === null) await check(pool, row);
      }
    },
    unreadyReason: () => unsafe,
  };
}
