import type postgres from 'postgres';

type Pool = postgres.Sql<{ bigint: number }>;

/** The use of a pool: busy connections, and callers that wait for one. */
type PoolUse = { pool: string; inUse: number; waiting: number };

/** The counter of one pool: statements that run or wait, and transactions. */
type PoolCounter = {
  readonly name: string;
  /** Connections for statements. */
  readonly max: number;
  statements: number;
  transactions: () => { inUse: number; waiting: number };
};

const open = new Set<PoolCounter>();

/** Registers a pool's counter until the returned function is called. */
export function openCounter(counter: PoolCounter): () => void {
  open.add(counter);
  return () => void open.delete(counter);
}

/** Reads the use of this process's pools. */
export function readPoolUse(): PoolUse[] {
  return [...open].map(({ name, max, statements, transactions }) => {
    const { inUse, waiting } = transactions();
    return {
      pool: name,
      inUse: Math.min(statements, max) + inUse,
      waiting: Math.max(0, statements - max) + waiting,
    };
  });
}

/** A statement of the driver, before it is sent. */
type Statement = {
  handler: (statement: Statement) => unknown;
  resolve: (value: unknown) => unknown;
  reject: (error: unknown) => unknown;
};

/** Wraps a pool so that its statements are counted from when they are sent or queued until their result. */
export function countStatements(pool: Pool, counter: PoolCounter): Pool {
  const { unsafe } = pool;
  const counted = (...args: Parameters<Pool>) => watch(pool(...args), counter);
  return Object.assign(counted, pool, {
    unsafe: (...args: Parameters<Pool['unsafe']>) => watch(unsafe(...args), counter),
  }) as unknown as Pool;
}

/** A fragment of another statement is never sent itself. */
function watch<T>(made: T, counter: PoolCounter): T {
  const statement = made as Partial<Statement>;
  const { handler, resolve, reject } = statement;
  if (handler === undefined || resolve === undefined || reject === undefined) return made;
  statement.handler = Object.assign((sent: Statement) => {
    counter.statements++;
    let isAnswered = false;
    const answered = () => {
      if (!isAnswered) counter.statements--;
      isAnswered = true;
    };
    sent.resolve = (value) => {
      answered();
      return resolve(value);
    };
    sent.reject = (error) => {
      answered();
      return reject(error);
    };
    return handler(sent);
  }, handler);
  return made;
}
