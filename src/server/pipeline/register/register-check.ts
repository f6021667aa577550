import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../store/database/connect.js';
import { findActiveLog, type Log, listLogs } from '../../store/log/logs.js';
import type { MonitoredRegister } from './monitored-register.js';
import { checkRegister, compareWithRegister, type Register } from './register.js';

type Deps = { pool: Pool; register: Register; log: Logger };

/** Compares every log with the register, as at start, and freezes those that contradict it. The log lines say so. */
export async function checkRegisters(deps: Deps): Promise<void> {
  for (const row of await listActiveLogs(deps.pool)) {
    const { origin } = row;
    if (row.frozenAt !== null) {
      deps.log.fatal({ origin, reason: row.frozenReason }, 'the log is frozen');
      continue;
    }
    const comparison = await checkRegister(deps, row);
    if (comparison.state === 'missing') {
      deps.log.error(
        { origin, reason: comparison.reason },
        'nothing is sealed without the checkpoint register',
      );
    }
  }
}

/** Why nothing is taken, or nothing sealed, in an environment; a proto Environment number. */
export type LogProblem = { environment: number; reason: string };

/** Says which active logs are frozen. */
export async function findLogProblems(deps: Deps): Promise<LogProblem[]> {
  const problems = await Promise.all(
    (await listActiveLogs(deps.pool)).map(async (row) => {
      if (row.frozenAt !== null) return [problemOf(row, row.frozenReason)];
      const comparison = await checkRegister(deps, row);
      return comparison.state === 'fork' ? [problemOf(row, comparison.reason)] : [];
    }),
  );
  return problems.flat();
}

/** Which active logs are frozen, by the tables alone. Costs one query. */
export async function findFrozen(pool: Pool): Promise<LogProblem[]> {
  const frozen = (await listActiveLogs(pool)).filter(({ frozenAt }) => frozenAt !== null);
  return frozen.map((row) => problemOf(row, row.frozenReason));
}

function problemOf({ environment, origin }: Log, reason: string | null): LogProblem {
  return { environment, reason: `the log ${origin} is frozen: ${reason}` };
}

/**
 * Says which logs cannot be sealed because the register lacks them, or could not be written; sealing needs it, serving
 * does not.
 */
export async function findRegisterProblems(pool: Pool, register: MonitoredRegister): Promise<LogProblem[]> {
  const problems = (await listActiveLogs(pool)).map(async (log) => {
    const comparison = await compareWithRegister(pool, register, log);
    const reason = comparison.state === 'missing' ? comparison.reason : register.findProblem(log.origin);
    return reason === undefined ? [] : [{ environment: log.environment, reason }];
  });
  return (await Promise.all(problems)).flat();
}

/** The logs that are written to: the newest epoch of each environment. */
async function listActiveLogs(pool: Pool): Promise<Log[]> {
  const logs = await listLogs(pool);
  return logs.filter((log) => findActiveLog(logs, log.environment)?.id === log.id);
}
