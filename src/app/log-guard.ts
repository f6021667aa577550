import { unavailable } from '../errors.js';
import type { Logger } from '../logger.js';
import { checkRegister, type Register } from '../pipeline/register.js';
import type { Directory } from '../rpc/directory.js';
import type { Pool } from '../store/connect.js';

/** Keeps a process from writing to a database that came back older than it was. */
export type LogGuard = {
  /** Told that a connection of the pool that writes was lost: what answers next may be a restored backup. */
  connectionLost(): void;
  /**
   * Compares the log with the register at first and once after each loss; throws, and freezes the log, when they
   * contradict. It asks over the pool that writes, so that there is a connection whose loss is noticed.
   */
  assertWritable(pool: Pool, logId: number): Promise<void>;
};

const FROZEN_RETRY_SECONDS = 60;

/** A guard that has not compared any log yet. */
export function createLogGuard(register: Register, directory: Directory, log: Logger): LogGuard {
  let losses = 0;
  const checkedAt = new Map<number, number>();
  return {
    connectionLost: () => {
      losses++;
    },
    assertWritable: async (pool, logId) => {
      const seen = losses;
      if (checkedAt.get(logId) === seen) return;
      const row = await directory.getLog(logId);
      const comparison = await checkRegister({ pool, register, log }, row);
      if (comparison.state === 'fork') {
        throw unavailable(`the log is frozen: ${comparison.reason}`, FROZEN_RETRY_SECONDS);
      }
      checkedAt.set(logId, seen);
    },
  };
}
