import type postgres from 'postgres';
import { untilAborted } from '../core/until-aborted.js';
import { inSpan } from '../telemetry/spans.js';
import { replicationUnknown } from './database-errors.js';
import { traceStatement } from './statement-span.js';

type Pool = postgres.Sql<{ bigint: number }>;
type Sql = postgres.ISql<{ bigint: number }>;

/** Runs transactions. */
type Transactions = {
  /**
   * Runs `run` in a transaction; rolls back if it throws. Rejects with its error, or with the code `CONNECTION_CLOSED`
   * if the connection was lost: if COMMIT had been sent, the transaction may be committed. Rejects with
   * `REPLICATION_UNKNOWN` if it was committed without the standby.
   */
  begin<T>(run: (tx: Sql) => Promise<T>): Promise<T>;
  /** Closes the connections, after running transactions have ended or `timeout` seconds have passed. */
  end(options?: { timeout?: number }): Promise<void>;
  /** Busy connections, and callers that wait for one. */
  use(): { inUse: number; waiting: number };
};

/** The reports of a connection: its loss, and a cancelled wait for the synchronous standby. */
type Reports = { onLost: () => void; onUnconfirmed: () => void };

/**
 * A connection, which reconnects by itself; `losses` counts its losses, `unconfirmed` its commits whose wait for the
 * standby was cancelled. `closing` is its idle timer.
 */
type Session = { sql: Pool; losses: number; unconfirmed: number; closing: NodeJS.Timeout | undefined };

/**
 * Runs transactions on their own connections, at most `max` at a time. The driver's `begin` keeps writing to a lost
 * connection, which ends the process, or sends a later statement or the ROLLBACK over the connection that replaced it,
 * within another transaction. Here nothing is sent after a loss.
 *
 * @param open opens a pool of one connection that makes these reports. It must not close idle connections: it
 *   cannot tell them from one whose transaction waits for its process, and would send the rest over another
 * @param name of the pool, for traces
 * @param idleMs an unused connection is closed after this
 */
export function createTransactions(
  open: (reports: Reports) => Pool,
  { name, max, idleMs }: { name: string; max: number; idleMs: number },
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
    begin: (run) =>
      inSpan(
        'transaction',
        { attributes: { 'db.system.name': 'postgresql', 'attest.pool': name } },
        async () => {
          const session = await take();
          const done = await runIn(session, name, run);
          give(session, done.clean);
          if ('error' in done) throw done.error;
          return done.result;
        },
      ),
    use: () => ({ inUse: busy.size, waiting: waiting.length }),
    async end({ timeout = 5 } = {}) {
      const drained = async () => {
        while (busy.size > 0) await new Promise<void>((resolve) => waiting.push(resolve));
      };
      await untilAborted(drained(), AbortSignal.timeout(timeout * 1000)).catch(() => {});
      const left = [...busy, ...idle.splice(0)];
      for (const { closing } of left) clearTimeout(closing);
      await Promise.all(left.map(({ sql }) => sql.end({ timeout: 0 })));
    },
  };
}

type Done<T> = { clean: boolean } & ({ result: T } | { error: unknown });

/** Runs one transaction. `clean` is whether the connection can be used again. */
async function runIn<T>(session: Session, name: string, run: (tx: Sql) => Promise<T>): Promise<Done<T>> {
  try {
    await session.sql.unsafe('BEGIN');
  } catch (error) {
    return { clean: false, error };
  }
  const { losses } = session;
  const tx = guardConnection(session, name);
  try {
    const result = await run(tx);
    const { unconfirmed } = session;
    await commit(tx);
    return session.unconfirmed === unconfirmed
      ? { clean: true, result }
      : { clean: true, error: replicationUnknown() };
  } catch (error) {
    return { clean: session.losses === losses && (await rollBack(tx)), error };
  }
}

function openSession(open: (reports: Reports) => Pool): Session {
  const session: Session = {
    sql: open({
      onLost: () => {
        session.losses++;
      },
      onUnconfirmed: () => {
        session.unconfirmed++;
      },
    }),
    losses: 0,
    unconfirmed: 0,
    closing: undefined,
  };
  return session;
}

/** Returns the session's SQL, whose statements are rejected once the connection it has now is lost. */
function guardConnection(session: Session, name: string): Sql {
  const { sql, losses } = session;
  const getConnection = (): Pool => {
    if (session.losses === losses) return sql;
    const message = 'the connection of this transaction was lost';
    throw Object.assign(new Error(message), { code: 'CONNECTION_CLOSED' });
  };
  const call = (...args: Parameters<Pool>) => traceStatement(getConnection()(...args), name);
  const unsafe: Pool['unsafe'] = (...args) => traceStatement(getConnection().unsafe(...args), name);
  return Object.assign(call, sql, { unsafe }) as unknown as Sql;
}

/** Postgres executes COMMIT as ROLLBACK if a statement of the transaction has failed. */
async function commit(tx: Sql): Promise<void> {
  const { command } = await tx.unsafe('COMMIT');
  if (command !== 'COMMIT')
    throw new Error('the transaction was rolled back: a statement failed and its error was not handled');
}

async function rollBack(tx: Sql): Promise<boolean> {
  try {
    await tx.unsafe('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}
