import type { Logger } from '../core/logger.js';
import type { Pool } from '../database/connect.js';
import type { Register } from '../log/register/register.js';
import { findFrozen, findLogProblems, type LogProblem } from '../log/register/register-check.js';

/** The dependencies of the health check. */
type HealthDeps = { pool: Pool; register: Register; log: Logger; monotonicMs: () => number };

const COMPARE_MS = 1_000;

/**
 * Creates the health check: it returns the environments that are not operational, with the reason. Concurrent callers share
 * one query. The tables are compared with the register at most once a second. Rejects while the database is unavailable.
 */
export function createHealthCheck({ monotonicMs, ...deps }: HealthDeps): () => Promise<LogProblem[]> {
  let comparedMs = Number.NEGATIVE_INFINITY;
  let underWay: Promise<LogProblem[]> | undefined;
  const look = async () => {
    const nowMs = monotonicMs();
    if (nowMs - comparedMs < COMPARE_MS) return findFrozen(deps.pool);
    const problems = await findLogProblems(deps);
    if (problems.length === 0) comparedMs = nowMs;
    return problems;
  };
  return () => {
    underWay ??= look().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
