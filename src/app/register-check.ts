import type { Logger } from '../logger.js';
import { checkRegister, compareWithRegister, type Register } from '../pipeline/register.js';
import type { Pool } from '../store/connect.js';
import { listLogs } from '../store/logs.js';

/**
 * Compares every log with the register, as at start and whenever the database connection was lost, and freezes those
 * that contradict it.
 */
export async function checkRegisters(pool: Pool, register: Register, log: Logger): Promise<void> {
  for (const row of await listLogs(pool)) {
    const comparison = await checkRegister(pool, register, row);
    if (comparison.state === 'fork')
      log.fatal({ origin: row.origin, reason: comparison.reason }, 'the log is frozen');
    if (comparison.state === 'missing') {
      log.error(
        { origin: row.origin },
        'the checkpoint register lacks this log; nothing is sealed until it is back',
      );
    }
  }
}

/** Says which active logs are frozen. */
export async function findLogProblems(pool: Pool, register: Register): Promise<string[]> {
  const logs = await listLogs(pool);
  const active = logs.filter(
    (log) => !logs.some((other) => other.environment === log.environment && other.epoch > log.epoch),
  );
  const problems = await Promise.all(
    active.map(async (log) => {
      if (log.frozenAt !== null) return `the log ${log.origin} is frozen: ${log.frozenReason}`;
      const comparison = await checkRegister(pool, register, log);
      return comparison.state === 'fork'
        ? `the log ${log.origin} is frozen: ${comparison.reason}`
        : undefined;
    }),
  );
  return problems.filter((problem) => problem !== undefined);
}

/** Says which logs this process cannot seal because the register lacks them; sealing needs it, serving does not. */
export async function findMissingInRegister(pool: Pool, register: Register): Promise<string[]> {
  const logs = await listLogs(pool);
  const states = await Promise.all(logs.map((log) => compareWithRegister(pool, register, log)));
  return logs
    .filter((_log, i) => states[i]?.state === 'missing')
    .map((log) => `the checkpoint register lacks the log ${log.origin}; see attest log --help`);
}
