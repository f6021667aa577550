import type postgres from 'postgres';

type Pool = postgres.Sql<{ bigint: number }>;

/** How much of a pool is used: connections that work, and callers that wait for one. */
export type PoolUse = { pool: string; inUse: number; waiting: number };

/** What is counted of one pool: statements that are under way or wait, and its transactions. */
export type PoolCounter = {
  readonly name: string;
  /** Connections for statements. */
  readonly max: number;
  statements: number;
  transactions: () => { inUse: number; waiting: number };
};

const open = new Set<PoolCounter>();

/** Counts a pool until the returned function is called. */
export function openCounter(counter: PoolCounter): () => void {
  open.add(counter);
  return () => void open.delete(counter);
}

/** The pools of this process. */
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

/** What the driver makes of a statement before it is sent. */
type Statement = {
  handler: (statement: Statement) => unknown;
  resolve: (value: unknown) => unknown;
  reject: (error: unknown) => unknown;
};

/** The same pool, whose statements are counted from when they are sent, or wait to be, until they are answered. */
export function countStatements(pool: Pool, counter: PoolCounter): Pool {
  const { unsafe } = pool;
  const counted = (...args: Parameters<Pool>) => watch(pool(...args), counter);
  return Object.assign(counted, pool, {
    unsafe: (...args: Parameters<Pool['unsafe']>) => watch(unsafe(...args), counter),
  }) as unknown as Pool;
}

/** A part of another statement is never sent itself. */
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
