/** Reads while no primary responds come from its synchronous standby. */
import { setTimeout as delay } from 'node:timers/promises';
import { connectPool, type Pool } from './connect.js';
import { NO_PRIMARY } from './database-errors.js';
import type { Statement } from './statement-span.js';

/** The synchronous standby, for statements that only read. */
export type ReadReplica = {
  /** A pool whose statements go to the standby while no primary responds. Its transactions are those of `pool`. */
  readsOf(pool: Pool): Pool;
  /** A pool whose statements are rejected once the primary is silent, rather than when their connections are closed. */
  impatient(pool: Pool): Pool;
  /** Why statements go to the standby; undefined while they go to the primary. */
  reason(): string | undefined;
  close(): Promise<void>;
};

type Options = {
  /** The primary, or several servers of which one is. */
  url: string;
  /** The synchronous standby: commits are acknowledged once it has them. */
  readUrl: string;
  /** Connections to the standby. */
  max: number;
  statementTimeoutMs: number;
  /** Called when statements begin to go to the standby, and when they go to the primary again. */
  onChange: (reason: string | undefined) => void;
};

/** How much of the write-ahead log of a cluster a server has: bytes flushed, and applied. */
type Position = { cluster: string; isStandby: boolean; flushed: number; applied: number };

const REASON = 'no primary of the database responds; reads come from its standby, nothing is stored';
/** A question to the primary; it is away 1.5 times this after it fell silent, and at once when it closes the connection. */
const ASK_TIMEOUT_MS = 1_000;
const WATCH_MS = 500;
const SEARCH_MS = 100;
/** Between two looks at a standby that has not applied what it has received. */
const APPLY_MS = 5;
/**
 * Longer than any failover takes. If a new primary leads that neither this process nor its standby reaches, reads would be
 * of the past.
 */
const LONGEST_MS = 10 * 60_000;

/**
 * Watches the primary, and serves reads from the standby while it is away: what is acknowledged is flushed there. Statements
 * that the primary has not answered until then are rejected, so that those that wait behind them go to the standby. A statement
 * is sent once the standby has applied all that it had when the statement was made, so a read shows every acknowledged write.
 * What the standby has and was not acknowledged survives a failover, which promotes it.
 */
export function openReadReplica({ url, readUrl, max, statementTimeoutMs, onChange }: Options): ReadReplica {
  let isStopping = false;
  let waking = new AbortController();
  const primary = connectPool({
    url,
    name: 'primary',
    max: 1,
    statementTimeoutMs: ASK_TIMEOUT_MS,
    onClose: () => waking.abort(),
  });
  const standby = connectPool({ url: readUrl, name: 'replica', max, statementTimeoutMs });
  const catchUp = createCatchingUp(standby, statementTimeoutMs);
  let reason: string | undefined;
  const sentToPrimary = new Set<Statement['reject']>();
  const change = (now: string | undefined) => {
    if (reason === now) return;
    reason = now;
    onChange(now);
    if (now === undefined) return;
    for (const reject of sentToPrimary) reject(noPrimary(now));
  };
  const watch = async () => {
    let last: (Position & { atMs: number }) | undefined;
    while (!isStopping) {
      waking = new AbortController();
      const found = await readPosition(primary).catch(() => undefined);
      const isPrimary = found !== undefined && !found.isStandby;
      if (isPrimary) last = { ...found, atMs: performance.now() };
      change(!isPrimary && last !== undefined && (await follows(standby, last)) ? REASON : undefined);
      const { signal } = waking;
      await delay(isPrimary ? WATCH_MS : SEARCH_MS, undefined, { signal, ref: false }).catch(() => {});
    }
  };
  const watching = watch();
  return {
    readsOf: (pool) =>
      sendBy(pool, (make) =>
        reason === undefined ? keep(make(pool), sentToPrimary) : hold(make(standby), catchUp),
      ),
    impatient: (pool) => sendBy(pool, (make) => keep(make(pool), sentToPrimary)),
    reason: () => reason,
    close: async () => {
      isStopping = true;
      waking.abort();
      await Promise.all([primary.end({ timeout: 0 }), standby.end({ timeout: 5 })]);
      await watching;
    },
  };
}

/** A pool whose statements are made by `choose`, which is given what makes one of a pool. */
function sendBy(pool: Pool, choose: <T>(make: (from: Pool) => T) => T): Pool {
  const read = (...args: Parameters<Pool>) => choose((from) => from(...args));
  const unsafe = (...args: Parameters<Pool['unsafe']>) => choose((from) => from.unsafe(...args));
  return Object.assign(read, pool, { unsafe }) as unknown as Pool;
}

async function readPosition(sql: Pool): Promise<Position | undefined> {
  const rows = await sql<Position[]>`
    SELECT (SELECT system_identifier::text FROM pg_control_system()) AS cluster, is_standby AS "isStandby",
      pg_wal_lsn_diff(CASE WHEN is_standby THEN coalesce(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
                           ELSE pg_current_wal_flush_lsn() END, '0/0')::bigint AS flushed,
      pg_wal_lsn_diff(CASE WHEN is_standby THEN pg_last_wal_replay_lsn()
                           ELSE pg_current_wal_flush_lsn() END, '0/0')::bigint AS applied
    FROM pg_is_in_recovery() AS is_standby`;
  return rows[0];
}

/** Whether the standby has what the primary had when it last responded, not too long ago. */
async function follows(standby: Pool, last: Position & { atMs: number }): Promise<boolean> {
  if (performance.now() - last.atMs > LONGEST_MS) return false;
  const position = await readPosition(standby).catch(() => undefined);
  return position?.cluster === last.cluster && position.flushed >= last.flushed;
}

/**
 * Waits until the standby has applied what it had flushed after the call. Callers that come during a look share the next
 * one.
 */
function createCatchingUp(standby: Pool, patienceMs: number): () => Promise<void> {
  let looking: Promise<unknown> = Promise.resolve();
  let next: Promise<void> | undefined;
  const look = async () => {
    next = undefined;
    const applying = untilApplied(standby, patienceMs);
    looking = applying.catch(() => {});
    await applying;
  };
  return () => {
    next ??= looking.then(look);
    return next;
  };
}

async function untilApplied(standby: Pool, patienceMs: number): Promise<void> {
  const endMs = performance.now() + patienceMs;
  const wanted = (await readPosition(standby))?.flushed ?? 0;
  while (((await readPosition(standby))?.applied ?? 0) < wanted) {
    if (performance.now() > endMs) {
      throw noPrimary('the standby does not apply what it receives');
    }
    await delay(APPLY_MS);
  }
}

function noPrimary(message: string): Error {
  return Object.assign(new Error(message), { code: NO_PRIMARY });
}

/** Keeps the `reject` of a statement in the set from when it is sent until its result. */
function keep<T>(made: T, kept: Set<Statement['reject']>): T {
  const statement = made as Partial<Statement>;
  const { handler, reject } = statement;
  if (handler === undefined || reject === undefined) return made;
  statement.handler = Object.assign((sent: Statement & Promise<unknown>) => {
    const done = () => kept.delete(reject);
    kept.add(reject);
    sent.then(done, done);
    return handler(sent);
  }, handler);
  return made;
}

/** Sends a statement once `until` resolves. A fragment of another statement is never sent itself. */
function hold<T>(made: T, until: () => Promise<void>): T {
  const statement = made as Partial<Statement>;
  const { handler } = statement;
  if (handler === undefined) return made;
  statement.handler = Object.assign(
    (sent: Statement) =>
      until().then(
        () => handler(sent),
        (error) => sent.reject(error),
      ),
    handler,
  );
  return made;
}
