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
};

/** One connection, which reconnects by itself; `losses` counts how often it was lost. */
type Session = { sql: Pool; losses: number };

/**
 * Transactions on connections of their own, at most `max` at a time. The driver's own `begin` goes on writing to a
 * connection that was lost, which ends the process, or sends a later statement or the ROLLBACK over whatever connection
 * has taken its place, within somebody else's transaction. Here nothing is sent after a loss.
 *
 * @param open opens a pool of one connection, and tells of each loss
 */
export function createTransactions(open: (onClose: () => void) => Pool, max: number): Transactions {
  const idle: Session[] = [];
  const busy = new Set<Session>();
  const waiting: (() => void)[] = [];

  const take = async (): Promise<Session> => {
    while (busy.size >= max) await new Promise<void>((resolve) => waiting.push(resolve));
    const session = idle.pop() ?? openSession(open);
    busy.add(session);
    return session;
  };
  const give = (session: Session, clean: boolean) => {
    busy.delete(session);
    if (clean) idle.push(session);
    else void session.sql.end({ timeout: 0 });
    waiting.shift()?.();
  };
  return {
    async begin(run) {
      const session = await take();
      let clean = false;
      try {
        await session.sql.unsafe('BEGIN');
        const { losses } = session;
        const tx = untilLost(session);
        try {
          const result = await run(tx);
          await commit(tx);
          clean = true;
          return result;
        } catch (error) {
          clean = session.losses === losses && (await rollBack(tx));
          throw error;
        }
      } finally {
        give(session, clean);
      }
    },
    async end({ timeout = 5 } = {}) {
      const drained = async () => {
        while (busy.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
      };
      const waited = new AbortController();
      const late = delay(timeout * 1000, undefined, { signal: waited.signal }).catch(() => {});
      await Promise.race([drained(), late]);
      waited.abort();
      await Promise.all([...busy, ...idle].map(({ sql }) => sql.end({ timeout: 0 })));
    },
  };
}

function openSession(open: (onClose: () => void) => Pool): Session {
  const session: Session = {
    sql: open(() => {
      session.losses++;
    }),
    losses: 0,
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
