import { unavailable } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../database/connect.js';
import { MAX_CLOCK_OFFSET_MS, readDatabaseMs } from '../../database/session.js';

/**
 * The clock of `submitted_at`: this machine's wall clock at the last comparison with the database's clock, advanced by
 * the monotonic clock. A step of the wall clock has no effect before the next comparison.
 */
export type StatementClock = {
  /** Unix milliseconds. Throws `service.unavailable` if the clocks differ by more than 5 s, or were never compared. */
  now(): number;
  /** Compares the clocks and logs when they start or cease to differ. Rejects, without effect, if the query fails. */
  compare(): Promise<void>;
  /** How far this machine's clock was ahead at the last comparison. Returns undefined before the first. */
  offsetSeconds(): number | undefined;
  /** The database's clock in Unix milliseconds, by the last comparison; this machine's before the first. */
  databaseMs(): number;
  /** Why `now` throws, for `/readyz`. Returns undefined if it does not. */
  unreadyReason(): string | undefined;
};

/** Times are in milliseconds, `wallMs` and `readDatabaseMs` since 1970. */
type StatementClockDeps = {
  wallMs: () => number;
  monotonicMs: () => number;
  readDatabaseMs: () => Promise<number>;
  log: Logger;
};

const RETRY_SECONDS = 5;

/** A clock that must be compared once before it is read. */
export function createStatementClock({
  wallMs,
  monotonicMs,
  readDatabaseMs,
  log,
}: StatementClockDeps): StatementClock {
  let anchor: { wallMs: number; monotonicMs: number } | undefined;
  let offsetMs: number | undefined;
  let problem: string | undefined;
  const recordProblem = (found: string | undefined) => {
    const detail = { offsetMs: Math.round(offsetMs ?? 0) };
    if (problem === undefined && found !== undefined)
      log.error(detail, `no submission is accepted: ${found}`);
    if (problem !== undefined && found === undefined)
      log.info(detail, 'submissions are accepted again: the clocks agree');
    problem = found;
  };
  const clocksDiffer = () =>
    unavailable("the service's clocks do not agree", RETRY_SECONDS, new Error(problem));
  return {
    now: () => {
      if (problem !== undefined || anchor === undefined) throw clocksDiffer();
      const steadyMs = anchor.wallMs + monotonicMs() - anchor.monotonicMs;
      if (Math.abs(wallMs() - steadyMs) > MAX_CLOCK_OFFSET_MS) {
        recordProblem("this machine's clock was set after it was compared with the database's");
        throw clocksDiffer();
      }
      return Math.floor(steadyMs);
    },
    compare: async () => {
      const sentMs = monotonicMs();
      const databaseNowMs = await readDatabaseMs();
      const nowMs = monotonicMs();
      const wallNowMs = wallMs();
      // The database read its clock at some time between request and response.
      const halfMs = (nowMs - sentMs) / 2;
      offsetMs = wallNowMs - halfMs - databaseNowMs;
      anchor = { wallMs: wallNowMs, monotonicMs: nowMs };
      const isFar = Math.abs(offsetMs) - halfMs > MAX_CLOCK_OFFSET_MS;
      const seconds = (offsetMs / 1000).toFixed(1);
      recordProblem(isFar ? `this machine's clock is ${seconds} s ahead of the database's` : undefined);
    },
    databaseMs: () => wallMs() - (offsetMs ?? 0),
    offsetSeconds: () => (offsetMs === undefined ? undefined : offsetMs / 1000),
    unreadyReason: () => problem,
  };
}

/** Opens the clock of a process over a pool, compared once with the database's. */
export async function openStatementClock(pool: Pool, log: Logger): Promise<StatementClock> {
  const clock = createStatementClock({
    wallMs: Date.now,
    monotonicMs: () => performance.now(),
    readDatabaseMs: () => readDatabaseMs(pool),
    log,
  });
  await clock.compare();
  return clock;
}
