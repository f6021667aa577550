import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../database/connect.js';
import { findActiveLogs, type Log, listLogs } from '../store/logs.js';
import type { MonitoredRegister } from './monitored-register.js';
import { checkRegister, compareWithRegister, type Register } from './register.js';

type Deps = { pool: Pool; register: Register; log: Logger };

/** Compares every active log with the register at start. Freezes and logs those that contradict it. */
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

/** Why an environment accepts or seals nothing. `environment` is a proto Environment number. */
export type LogProblem = { environment: number; reason: string };

/** Lists the active logs that are frozen, after comparing each with the register. */
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

/** Lists the active logs that the tables mark as frozen, in one query. */
export async function findFrozen(pool: Pool): Promise<LogProblem[]> {
  const frozen = (await listActiveLogs(pool)).filter(({ frozenAt }) => frozenAt !== null);
  return frozen.map((row) => problemOf(row, row.frozenReason));
}

function problemOf({ environment, origin }: Log, reason: string | null): LogProblem {
  return { environment, reason: `the log ${origin} is frozen: ${reason}` };
}

/**
 * Lists the logs that cannot be sealed because the register lacks them or failed to be written. Serving needs no
 * register.
 */
export async function findRegisterProblems(pool: Pool, register: MonitoredRegister): Promise<LogProblem[]> {
  const problems = (await listActiveLogs(pool)).map(async (log) => {
    const comparison = await compareWithRegister(pool, register, log);
    const reason = comparison.state === 'missing' ? comparison.reason : register.findProblem(log.origin);
    return reason === undefined ? [] : [{ environment: log.environment, reason }];
  });
  return (await Promise.all(problems)).flat();
}

async function listActiveLogs(pool: Pool): Promise<Log[]> {
  return findActiveLogs(await listLogs(pool));
}
