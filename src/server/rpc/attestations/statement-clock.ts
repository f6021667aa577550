import { unavailable } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';

/**
 * The time that statements say they were submitted at: this machine's clock as it was when it was last compared with the
 * database's, and steadily on from there, so that no step of it gets into a statement uncompared.
 */
export type StatementClock = {
  /** Unix milliseconds; throws `service.unavailable` while the two clocks are further apart than a few seconds. */
  now(): number;
  /** Compares; the log says when they part and when they agree again. Rejects, and changes nothing, without an answer. */
  compare(): Promise<void>;
  /** How far this machine's clock is ahead of the database's, as of the last comparison; undefined before the first. */
  offsetSeconds(): number | undefined;
  /** Why no time can be told, for this process's operator; undefined when it can. */
  unreadyReason(): string | undefined;
};

/** What a clock is made of; times in milliseconds, `wallMs` and `databaseMs` since 1970. */
export type StatementClockDeps = {
  wallMs: () => number;
  monotonicMs: () => number;
  databaseMs: () => Promise<number>;
  log: Logger;
};

/** Machines that keep time at all are closer; statements are ordered by the log, and dated by its witnesses. */
const MAX_OFFSET_MS = 5_000;
const RETRY_SECONDS = 5;

/** A clock that tells no time before it has compared once. */
export function createStatementClock({
  wallMs,
  monotonicMs,
  databaseMs,
  log,
}: StatementClockDeps): StatementClock {
  let anchor: { wallMs: number; monotonicMs: number } | undefined;
  let offsetMs: number | undefined;
  let problem: string | undefined;
  const note = (found: string | undefined) => {
    const detail = { offsetMs: Math.round(offsetMs ?? 0) };
    if (problem === undefined && found !== undefined) log.error(detail, `no submission is taken: ${found}`);
    if (problem !== undefined && found === undefined)
      log.info(detail, 'submissions are taken: the clocks agree');
    problem = found;
  };
  const refuse = () => unavailable("the service's clocks do not agree", RETRY_SECONDS, new Error(problem));
  return {
    now: () => {
      if (problem !== undefined || anchor === undefined) throw refuse();
      const steadyMs = anchor.wallMs + monotonicMs() - anchor.monotonicMs;
      if (Math.abs(wallMs() - steadyMs) > MAX_OFFSET_MS) {
        note("this machine's clock was set after it was compared with the database's");
        throw refuse();
      }
      return Math.floor(steadyMs);
    },
    compare: async () => {
      const askedMs = monotonicMs();
      const theirsMs = await databaseMs();
      const nowMs = monotonicMs();
      const oursMs = wallMs();
      // The database looked at its clock at some time between question and answer.
      const halfMs = (nowMs - askedMs) / 2;
      offsetMs = oursMs - halfMs - theirsMs;
      anchor = { wallMs: oursMs, monotonicMs: nowMs };
      const isFar = Math.abs(offsetMs) - halfMs > MAX_OFFSET_MS;
      const seconds = (offsetMs / 1000).toFixed(1);
      note(isFar ? `this machine's clock is ${seconds} s ahead of the database's` : undefined);
    },
    offsetSeconds: () => (offsetMs === undefined ? undefined : offsetMs / 1000),
    unreadyReason: () => problem,
  };
}
