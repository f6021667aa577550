import type { Logger } from '../logger.js';
import { checkRegister, compareWithRegister, type Register } from '../pipeline/register.js';
import type { Pool } from '../store/connect.js';
import { findActiveLog, type Log, listLogs } from '../store/logs.js';

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

/** Says which active logs are frozen. */
export async function findLogProblems(deps: Deps): Promise<string[]> {
  const problems = await Promise.all(
    (await listActiveLogs(deps.pool)).map(async (row) => {
      if (row.frozenAt !== null) return reasonOf(row);
      const comparison = await checkRegister(deps, row);
      return comparison.state === 'fork'
        ? `the log ${row.origin} is frozen: ${comparison.reason}`
        : undefined;
    }),
  );
  return problems.filter((problem) => problem !== undefined);
}

/** Why an active log is frozen, by the tables alone; undefined when none is. Costs one query. */
export async function findFrozenReason(pool: Pool): Promise<string | undefined> {
  const frozen = (await listActiveLogs(pool)).find(({ frozenAt }) => frozenAt !== null);
  return frozen && reasonOf(frozen);
}

function reasonOf({ origin, frozenReason }: Log): string {
  return `the log ${origin} is frozen: ${frozenReason}`;
}

/** Says which logs cannot be sealed because the register lacks them; sealing needs it, serving does not. */
export async function findMissingInRegister({ pool, register }: Deps): Promise<string[]> {
  const logs = await listActiveLogs(pool);
  const comparisons = await Promise.all(logs.map((log) => compareWithRegister(pool, register, log)));
  return comparisons.flatMap((comparison) => (comparison.state === 'missing' ? [comparison.reason] : []));
}

/** The logs that are written to: the newest epoch of each environment. */
async function listActiveLogs(pool: Pool): Promise<Log[]> {
  const logs = await listLogs(pool);
  return logs.filter((log) => findActiveLog(logs, log.environment)?.id === log.id);
}
