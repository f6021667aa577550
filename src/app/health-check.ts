import type { Logger } from '../logger.js';
import type { Register } from '../pipeline/register.js';
import type { Pool } from '../store/connect.js';
import { findFrozenReason, findLogProblems } from './register-check.js';

/** What the check asks. */
export type HealthDeps = { pool: Pool; register: Register; log: Logger; monotonicMs: () => number };

const COMPARE_MS = 1_000;

/**
 * Makes the check whether the service is operational: it says why not, or undefined. Each look asks the database, and
 * those who ask while one is under way share it, so that probes cost next to nothing; the tables are held against the
 * register at most once a second. Rejects while the database is away.
 */
export function createHealthCheck({ monotonicMs, ...deps }: HealthDeps): () => Promise<string | undefined> {
  let comparedMs = Number.NEGATIVE_INFINITY;
  let underWay: Promise<string | undefined> | undefined;
  const look = async () => {
    const nowMs = monotonicMs();
    if (nowMs - comparedMs < COMPARE_MS) return findFrozenReason(deps.pool);
    const [problem] = await findLogProblems(deps);
    if (problem === undefined) comparedMs = nowMs;
    return problem;
  };
  return () => {
    underWay ??= look().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
