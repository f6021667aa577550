import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '../core/until-aborted.js';
import { connectPool, type Pool } from './connect.js';
import { STANDBY_AWAY } from './database-errors.js';

/** Watches whether commits are confirmed: whether the synchronous standby, if the server has one, responds. */
export type StandbyWatch = {
  /** Why no commit is confirmed now; undefined if commits are. */
  reason(): string | undefined;
  /** Throws with the code `STANDBY_AWAY` while no commit is confirmed. */
  assertAnswers(): void;
  /**
   * Runs work that ends in a commit. Rejects with the code `STANDBY_AWAY` if the standby is away or goes away meanwhile:
   * what was sent may be committed.
   */
  guard<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
};

type Options = {
  url: string;
  /** Called when the standby stops responding, and when it responds again. */
  onChange: (reason: string | undefined) => void;
};

const REASON = "the database's synchronous standby does not answer";
const ASK_MS = 1_000;
/** Shorter than the 5 s timeout of a write, by an interval and a query. */
const PATIENCE_MS = 2_500;
const LOOK_MS = 500;
const STATEMENT_TIMEOUT_MS = 5_000;

/** Aborted when the standby goes away; each write that is open listens to it. */
function newAway(): AbortController {
  const away = new AbortController();
  setMaxListeners(0, away.signal);
  return away;
}

/**
 * Asks every second with a commit of its own. One that hangs is left alone until the standby answers: to cancel it would
 * show what is not replicated. On a server without a synchronous standby it writes nothing.
 */
export function watchStandby({ url, onChange }: Options): StandbyWatch {
  const name = `standby ${randomBytes(4).toString('hex')}`;
  const pool = connectPool({
    url,
    name,
    max: 2,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    isPatient: true,
  });
  const stopping = new AbortController();
  let away = newAway();
  let reason: string | undefined;
  const change = (now: string | undefined) => {
    if (reason === now) return;
    reason = now;
    onChange(now);
    if (now === undefined) away = newAway();
    else away.abort(standbyAway());
  };
  const assertAnswers = () => {
    if (reason !== undefined) throw standbyAway();
  };
  const asking = keepAsking({ pool, application: `attest ${name}`, change }, stopping.signal);
  return {
    reason: () => reason,
    assertAnswers,
    async guard(work) {
      assertAnswers();
      return untilAborted(work(), away.signal);
    },
    async close() {
      stopping.abort();
      await pool.end({ timeout: 0 });
      await asking;
    },
  };
}

function standbyAway(): Error {
  return Object.assign(new Error(REASON), { code: STANDBY_AWAY });
}

type Asking = { pool: Pool; application: string; change: (reason: string | undefined) => void };

async function keepAsking(asking: Asking, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    await ask(asking, stopping).catch(() => {});
    await delay(ASK_MS, undefined, { signal: stopping }).catch(() => {});
  }
}

/**
 * Commits once, and looks while the commit takes longer than it should. Ends when it is confirmed. Rejects when its
 * connection is lost: callers see an unreachable database by their own statements.
 */
async function ask({ pool, application, change }: Asking, stopping: AbortSignal): Promise<void> {
  let isOver = false;
  const commit = pool`
    SELECT confirm_durable() WHERE current_setting('synchronous_standby_names') <> ''`.finally(() => {
    isOver = true;
  });
  const slow = new AbortController();
  const look = async () => {
    await delay(PATIENCE_MS, undefined, { signal: slow.signal });
    while (!isOver && !stopping.aborted) {
      if (await isWaitingForStandby(pool, application).catch(() => false)) change(REASON);
      await delay(LOOK_MS, undefined, { signal: slow.signal });
    }
  };
  const looking = look().catch(() => {});
  try {
    await commit;
  } finally {
    slow.abort();
    await looking;
    change(undefined);
  }
}

/** Whether a commit of this application waits for the standby, and not for a disk or a lock. */
async function isWaitingForStandby(pool: Pool, application: string): Promise<boolean> {
  const rows = await pool`
    SELECT FROM pg_stat_activity WHERE application_name = ${application} AND wait_event = 'SyncRep'`;
  return rows.length > 0;
}
