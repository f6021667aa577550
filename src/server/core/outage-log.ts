import type { Logger } from './logger.js';

/** What says that something fails: at once, then at growing intervals while it goes on, and when it is over. */
export type OutageLog = {
  /** It failed; `fields` and `message` are written now or not at all. */
  failed(fields: object, message: string): void;
  /** It worked; this is written when it had failed before. */
  recovered(fields: object, message: string): void;
};

/** One for each piece of work, by its name. */
export type OutageLogs = { for(work: string): OutageLog };

const FIRST_PAUSE_MS = 5_000;
const LAST_PAUSE_MS = 10 * 60_000;
/** What has not failed for so long has worked meanwhile, where nobody says so. */
const OVER_MS = 60_000;

/** Of one piece of work: lines about it come at once, after 5 s, 10 s, 20 s and so on, every ten minutes at last. */
export function createOutageLog(log: Pick<Logger, 'warn' | 'info'>, monotonicMs: () => number): OutageLog {
  let sinceMs: number | undefined;
  let lastMs = 0;
  let failures = 0;
  let pauseMs = 0;
  let nextMs = 0;
  const told = (nowMs: number) => ({ failures, seconds: Math.round((nowMs - (sinceMs ?? nowMs)) / 1000) });
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
      log.warn({ ...fields, ...told(nowMs) }, message);
      nextMs = nowMs + pauseMs;
      pauseMs = Math.min(LAST_PAUSE_MS, 2 * pauseMs);
    },
    recovered(fields, message) {
      if (sinceMs === undefined) return;
      log.info({ ...fields, ...told(monotonicMs()) }, message);
      sinceMs = undefined;
    },
  };
}

/** Makes each when it is first asked for. */
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
