import type { Logger } from './logger.js';

/** What says that something fails: at once, then at growing intervals while it goes on, and when it is over. */
export type Trouble = {
  /** It failed; `fields` and `message` are written now or not at all. */
  failed(fields: object, message: string): void;
  /** It worked. `message` is written when it had failed before. */
  worked(message: string): void;
};

const FIRST_PAUSE_MS = 5_000;
const LAST_PAUSE_MS = 10 * 60_000;

/** Of one piece of work: lines about it come at once, after 5 s, 10 s, 20 s and so on, every ten minutes at last. */
export function createTrouble(log: Pick<Logger, 'warn' | 'info'>, monotonicMs: () => number): Trouble {
  let sinceMs: number | undefined;
  let failures = 0;
  let pauseMs = 0;
  let nextMs = 0;
  return {
    failed(fields, message) {
      const nowMs = monotonicMs();
      if (sinceMs === undefined) {
        sinceMs = nowMs;
        failures = 0;
        pauseMs = FIRST_PAUSE_MS;
        nextMs = nowMs;
      }
      failures++;
      if (nowMs < nextMs) return;
      log.warn({ ...fields, failures, seconds: Math.round((nowMs - sinceMs) / 1000) }, message);
      nextMs = nowMs + pauseMs;
      pauseMs = Math.min(LAST_PAUSE_MS, 2 * pauseMs);
    },
    worked(message) {
      if (sinceMs === undefined) return;
      log.info({ failures, seconds: Math.round((monotonicMs() - sinceMs) / 1000) }, message);
      sinceMs = undefined;
    },
  };
}
