import { setTimeout as delay } from 'node:timers/promises';
import type postgres from 'postgres';

type Pool = postgres.Sql<{ bigint: number }>;
type Sql = postgres.ISql<{ bigint: number }>;

/** Runs transactions. */
export type Transactions = {
  /**
   * Commits what `run` does, or, when it fails, nothing of it. Rejects with what `run` failed with, and with the code
   * `CONNECTION_CLOSED` when the connection was lost: once COMMIT was under way, it may have been carried out.
   */
  begin<T>(run: (tx: Sql) => Promise<T>): Promise<T>;
  /** Resolves when transactions under way have ended, or after `timeout` seconds, and connections are closed. */
  end(options?: { timeout?: number }): Promise<void>;
  /** Connections that work, and callers that wait for one. */
  use(): { inUse: number; waiting: number };
};

/** One connection, which reconnects by itself; `losses` counts how often it was lost. `closing` is its end while idle. */
type Session = { sql: Pool; losses: number; closing: NodeJS.Timeout | undefined };

/**
 * Transactions on connections of their own, at most `max` at a time. The driver's own `begin` goes on writing to a
 * connection that was lost, which ends the process, or sends a later statement or the ROLLBACK over whatever connection
 * has taken its place, within somebody else's transaction. Here nothing is sent after a loss.
 *
 * @param open opens a pool of one connection, and tells of each loss; it must close none for being idle, since it cannot
 *   tell an idle one from one in a transaction that waits for its process, and would send the rest over another
 * @param idleMs after this a connection that nobody uses is closed
 */
export function createTransactions(
  open: (onClose: () => void) => Pool,
  { max, idleMs }: { max: number; idleMs: number },
): Transactions {
  const idle: Session[] = [];
  const busy = new Set<Session>();
  const waiting: (() => void)[] = [];

  const take = async (): Promise<Session> => {
    while (busy.size >= max) await new Promise<void>((resolve) => waiting.push(resolve));
    const session = idle.pop() ?? openSession(open);
    clearTimeout(session.closing);
    busy.add(session);
    return session;
  };
  const give = (session: Session, clean: boolean) => {
    busy.delete(session);
    if (clean) keep(session);
    else void session.sql.end({ timeout: 0 });
    waiting.shift()?.();
  };
  const keep = (session: Session) => {
    idle.push(session);
    session.closing = setTimeout(() => {
      idle.splice(idle.indexOf(session), 1);
      void session.sql.end({ timeout: 0 });
    }, idleMs).unref();
  };
  return {
    async begin(run) {
      const session = await take();
      const done = await runIn(session, run);
      give(session, done.clean);
      if ('error' in done) throw done.error;
      return done.result;
    },
    use: () => ({ inUse: busy.size, waiting: waiting.length }),
    async end({ timeout = 5 } = {}) {
      const drained = async () => {
        while (busy.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
      };
      const waited = new AbortController();
      const late = delay(timeout * 1000, undefined, { signal: waited.signal }).catch(() => {});
      await Promise.race([drained(), late]);
      waited.abort();
      const left = [...busy, ...idle.splice(0)];
      for (const { closing } of left) clearTimeout(closing);
      await Promise.all(left.map(({ sql }) => sql.end({ timeout: 0 })));
    },
  };
}

type Done<T> = { clean: boolean } & ({ result: T } | { error: unknown });

/** One transaction; `clean` says whether the connection can serve another. */
async function runIn<T>(session: Session, run: (tx: Sql) => Promise<T>): Promise<Done<T>> {
  try {
    await session.sql.unsafe('BEGIN');
  } catch (error) {
    return { clean: false, error };
  }
  const { losses } = session;
  const tx = untilLost(session);
  try {
    const result = await run(tx);
    await commit(tx);
    return { clean: true, result };
  } catch (error) {
    return { clean: session.losses === losses && (await rollBack(tx)), error };
  }
}

function openSession(open: (onClose: () => void) => Pool): Session {
  const session: Session = {
    sql: open(() => {
      session.losses++;
    }),
    losses: 0,
    closing: undefined,
  };
  return session;
}

/** The session's SQL as long as the connection stands that it has now; then every statement is refused here. */
function untilLost(session: Session): Sql {
  const { sql, losses } = session;
  const standing = (): Pool => {
    if (session.losses === losses) return sql;
    const message = 'the connection of this transaction was lost';
    throw Object.assign(new Error(message), { code: 'CONNECTION_CLOSED' });
  };
  const call = (...args: Parameters<Pool>) => standing()(...args);
  const unsafe: Pool['unsafe'] = (...args) => standing().unsafe(...args);
  return Object.assign(call, sql, { unsafe }) as unknown as Sql;
}

/** COMMIT of a transaction in which a statement has failed is carried out as ROLLBACK. */
async function commit(tx: Sql): Promise<void> {
  const { command } = await tx.unsafe('COMMIT');
  if (command !== 'COMMIT') throw new Error('a statement of the transaction failed and nobody noticed');
}

async function rollBack(tx: Sql): Promise<boolean> {
  try {
    await tx.unsafe('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}
