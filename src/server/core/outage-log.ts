import type { Logger } from './logger.js';

/** Logs an outage: its start at once, its duration at growing intervals, and its end. */
export type OutageLog = {
  /** Reports a failure. Writes `fields` and `message`, unless a line was written too recently. */
  failed(fields: object, message: string): void;
  /** Reports a success. Writes a line if the last report was a failure. */
  recovered(fields: object, message: string): void;
};

/** Outage logs by name of the work. */
export type OutageLogs = { for(work: string): OutageLog };

const FIRST_PAUSE_MS = 5_000;
const LAST_PAUSE_MS = 10 * 60_000;
/** A failure this long after the last one starts a new outage. */
const OVER_MS = 60_000;

/** Creates the outage log of one piece of work. Its lines are 5 s, 10 s, 20 s … apart, at most ten minutes. */
export function createOutageLog(log: Pick<Logger, 'warn' | 'info'>, monotonicMs: () => number): OutageLog {
  let sinceMs: number | undefined;
  let lastMs = 0;
  let failures = 0;
  let pauseMs = 0;
  let nextMs = 0;
  const duration = (nowMs: number) => ({
    failures,
    seconds: Math.round((nowMs - (sinceMs ?? nowMs)) / 1000),
  });
  return {
    failed(fields, message) {
      const nowMs = monotonicMs();
      if (sinceMs === undefined || nowMs - lastMs > OVER_MS) {
        sinceMs = nowMs;
        failures = 0;
        pauseMs = FIRST_PAUSE_MS;
        nextMs = nowMs;
      }
      failures++;
      lastMs = nowMs;
      if (nowMs < nextMs) return;
      log.warn({ ...fields, ...duration(nowMs) }, message);
      nextMs = nowMs + pauseMs;
      pauseMs = Math.min(LAST_PAUSE_MS, 2 * pauseMs);
    },
    recovered(fields, message) {
      if (sinceMs === undefined) return;
      log.info({ ...fields, ...duration(monotonicMs()) }, message);
      sinceMs = undefined;
    },
  };
}

/** Creates each outage log on first use. */
export function createOutageLogs(log: Pick<Logger, 'warn' | 'info'>, monotonicMs: () => number): OutageLogs {
  const outageLogs = new Map<string, OutageLog>();
  return {
    for(work) {
      const outageLog = outageLogs.get(work) ?? createOutageLog(log, monotonicMs);
      outageLogs.set(work, outageLog);
      return outageLog;
    },
  };
}
