/**
 * The newest acknowledged submission of each log is kept in this process's memory. A database that lacks it is a promoted
 * asynchronous replica or a restored backup. While the submission is unsealed, nothing durable would reveal the loss.
 */

import { toHex } from '../../proof/bytes/encoding.js';
import { unavailable } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import type { Pool, Sql } from '../database/connect.js';
import { findUnsafeSetting } from '../database/session.js';
import type { LogCache } from './log-cache.js';
import { checkRegister, type Register } from './register/register.js';
import type { Leaf } from './store/leaves.js';
import { findLeafHash, readLogSize } from './store/leaves.js';
import { freezeLog, type Log } from './store/logs.js';

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
  /** Records an acknowledged leaf; called before its client gets the response. */
  recordAcknowledged(logId: number, leaf: Leaf): void;
  /** Checks all active logs, and that the server's settings make commits durable. Logs what it finds. */
  checkLogs(pool: Pool): Promise<void>;
  /** Why no submission is accepted although no log is frozen. Returns undefined if submissions are accepted. */
  unreadyReason(): string | undefined;
};

const FROZEN_RETRY_SECONDS = 60;
const UNSAFE_RETRY_SECONDS = 5;
const UNSAFE = 'the database would not keep what is acknowledged';

/** Returns a guard that has checked no log yet. */
export function createLogGuard(register: Register, logCache: LogCache, log: Logger): LogGuard {
  const newest = new Map<number, Leaf>();
  let losses = 0;
  let unsafe: string | undefined;
  const checkedAt = new Map<number, number>();
  const findContradiction = async (pool: Pool, row: Log): Promise<string | undefined> => {
    const comparison = await checkRegister({ pool, register, log }, row);
    if (comparison.state === 'fork') return comparison.reason;
    return checkAcknowledged({ pool, log }, row, newest.get(row.id));
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
    recordAcknowledged: (logId, leaf) => {
      if (leaf.logIndex > (newest.get(logId)?.logIndex ?? -1)) newest.set(logId, leaf);
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

/**
 * Looks up the newest acknowledged leaf of a log, if there is one. Freezes the log, and logs that once, if the database does not hold the
 * leaf at its index.
 *
 * @returns the reason for the freeze, or undefined if the leaf exists
 */
async function checkAcknowledged(
  { pool, log }: { pool: Pool; log: Logger },
  row: Log,
  leaf: Leaf | undefined,
): Promise<string | undefined> {
  if (leaf === undefined || (await findLoss(pool, row.id, leaf)) === undefined) return undefined;
  let reason: string | undefined;
  const isFrozen = await freezeLog(pool, row.id, async (tx) => {
    reason = await findLoss(tx, row.id, leaf);
    return reason;
  });
  if (isFrozen) log.fatal({ origin: row.origin, reason }, 'the log is frozen');
  return reason;
}

/** Describes the loss if the leaf is missing. No need to wait for it: all leaves before it were committed first. */
async function findLoss(sql: Sql, logId: number, { logIndex, leafHash }: Leaf): Promise<string | undefined> {
  const found = await findLeafHash(sql, logId, logIndex);
  if (found !== undefined && toHex(found) === leafHash) return undefined;
  const acknowledged = `the submission at index ${logIndex} (leaf ${leafHash}) was acknowledged`;
  if (found !== undefined) {
    return `${acknowledged}, and another one has its place in the database: acknowledged submissions are missing`;
  }
  const size = await readLogSize(sql, logId);
  return `${acknowledged}, and the database ends at ${size}: acknowledged submissions from index ${size} on are missing`;
}
