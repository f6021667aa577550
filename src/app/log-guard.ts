import { unavailable } from '../errors.js';
import type { Logger } from '../logger.js';
import { checkRegister, type Register } from '../pipeline/register.js';
import type { Directory } from '../rpc/directory.js';
import type { Pool } from '../store/connect.js';

/** Keeps a process from writing to a database that came back older than it was. */
export type LogGuard = {
  /** Told that a connection to the database was lost: what answers next may be a restored backup. */
  connectionLost(): void;
  /** Compares the log with the register once after each loss; throws, and freezes the log, when they contradict. */
  assertWritable(logId: number): Promise<void>;
};

const FROZEN_RETRY_SECONDS = 60;

export function createLogGuard(pool: Pool, register: Register, directory: Directory, log: Logger): LogGuard {
  let losses = 0;
  const checkedAt = new Map<number, number>();
  return {
    connectionLost: () => {
      losses++;
    },
    assertWritable: async (logId) => {
      const seen = losses;
      if ((checkedAt.get(logId) ?? 0) === seen) return;
      const row = await directory.getLog(logId);
      const comparison = await checkRegister(pool, register, row);
      if (comparison.state === 'fork') {
        log.fatal({ origin: row.origin, reason: comparison.reason }, 'the log is frozen');
        throw unavailable(`the log is frozen: ${comparison.reason}`, FROZEN_RETRY_SECONDS);
      }
      checkedAt.set(logId, seen);
    },
  };
}
