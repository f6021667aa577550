import postgres from 'postgres';
import { exponentialMs } from '../../protocol/backoff.js';
import { replicationUnknown } from './database-errors.js';
import { openPrimary, type Primary, urlsOf } from './primary.js';
import { sessionSettings } from './session-settings.js';
import { type Statement, traceStatement } from './statement-span.js';
import { createTransactions } from './transactions.js';
import { watchedSockets } from './watched-socket.js';

/** A pool of connections, or one of its transactions. */
export type Sql = postgres.ISql<{ bigint: number }>;

/** A pool of connections. */
export type Pool = postgres.Sql<{ bigint: number }>;

/** Log indexes, sizes and counters stay below 2^53, so `bigint` columns are read as numbers. */
const NUMBER_FROM_BIGINT = {
  to: 20,
  from: [20],
  serialize: (value: number) => String(value),
  parse: (text: string) => Number(text),
};

/**
 * Options of a pool. `onClose` is called whenever a connection is lost. If `isPatient`, a statement may set a longer
 * timeout for itself, and silent connections are not closed. If `commitsLocally`, commits do not wait for a synchronous
 * standby: for what need not survive a failover.
 */
export type PoolOptions = {
  url: string;
  name: string;
  max: number;
  statementTimeoutMs: number;
  isPatient?: boolean;
  /** Uses generic plans: for statements with one good plan that take as long to plan as to run. */
  planOnce?: boolean;
  commitsLocally?: boolean;
  /** Runs each transaction, and may end the wait for it. */
  guard?: <T>(work: () => Promise<T>) => Promise<T>;
  onClose?: () => void;
};

/**
 * Opens a pool of `max` connections, and half as many for transactions, on demand, to the primary if the URL names several
 * servers. A statement times out after
 * `statementTimeoutMs`; a transaction that its process leaves idle after five seconds, so that a stopped or
 * disconnected process does not hold locks for longer. A connection that is silent for 1.5 times the timeout is closed,
 * and its callers get an error: the outcome is unknown.
 *
 * The driver is patched (`patches/`). Unpatched, a connection that is lost while it is opened or written to ends the
 * process or never recovers.
 */
export function connectPool(options: PoolOptions): Pool {
  const { max, statementTimeoutMs, onClose = () => {} } = options;
  // Less than the silence after which a connection is closed.
  const idleMs = statementTimeoutMs;
  const primary = urlsOf(options.url).length > 1 ? openPrimary(options.url) : undefined;
  const transactions = createTransactions(
    ({ onLost, onUnconfirmed }) =>
      openConnections(options, primary, { max: 1, idle_timeout: 0, onclose: onLost, onUnconfirmed }),
    { name: options.name, max: Math.ceil(max / 2), idleMs },
  );
  const counter = { name: options.name, max, statements: 0, unconfirmed: 0, transactions: transactions.use };
  const driver = openConnections(options, primary, {
    max,
    idle_timeout: idleMs / 1000,
    onclose: onClose,
    onUnconfirmed: () => {
      counter.unconfirmed++;
    },
  });
  const { end } = driver;
  const { guard = (work) => work() } = options;
  const stopCounting = openCounter(counter);
  return Object.assign(countStatements(driver, counter), {
    begin: <T>(run: (tx: Sql) => Promise<T>) => guard(() => transactions.begin(run)),
    end: async (how?: { timeout?: number }) => {
      stopCounting();
      await Promise.all([end(how), transactions.end(how)]);
      primary?.close();
    },
  });
}

const MAX_CONNECT_SECONDS = 5;
const RECONNECT = { firstMs: 50, maxMs: 1_000 };

function openConnections(
  options: PoolOptions,
  primary: Primary | undefined,
  {
    onUnconfirmed,
    ...more
  }: { max: number; idle_timeout: number; onclose: () => void; onUnconfirmed: () => void },
): Pool {
  const { url, name, statementTimeoutMs, isPatient = false } = options;
  const open = watchedSockets(isPatient ? undefined : statementTimeoutMs * 1.5);
  const sockets = { socket: primary?.sockets(open) ?? open };
  return postgres(urlsOf(url)[0] ?? url, {
    ...more,
    ...sockets,
    // A server may become a standby between being found and being connected to.
    ...(primary && { target_session_attrs: 'primary' }),
    // Sooner than the socket is closed as silent: the driver reopens such a socket without an event.
    connect_timeout: Math.min(MAX_CONNECT_SECONDS, statementTimeoutMs / 1000),
    max_lifetime: null,
    backoff: (attempt: number) => exponentialMs(attempt, RECONNECT) / 1000,
    connection: { application_name: `attest ${name}`, ...sessionSettings(options) },
    onnotice: ({ routine }) => {
      if (routine === WAIT_FOR_STANDBY) onUnconfirmed();
    },
    types: { bigint: NUMBER_FROM_BIGINT },
  });
}

/** The function of Postgres that waits for a synchronous standby. It warns when the wait is cancelled. */
const WAIT_FOR_STANDBY = 'SyncRepWaitForLSN';

/** The type `bytea[]` (pg_type.dat). */
const BYTEA_ARRAY_OID = 1001;

/** A `bytea[]` parameter of a statement. */
type ByteaArray = postgres.Parameter<readonly (Uint8Array | null)[]>;

/** Makes a `bytea[]` parameter; the driver would take an array of bytes for one `bytea`. */
export function byteaArray(sql: Sql, values: readonly (Uint8Array | null)[]): ByteaArray {
  return sql.typed(values as never, BYTEA_ARRAY_OID);
}

/** The use of a pool: busy connections, and callers that wait for one. */
type PoolUse = { pool: string; inUse: number; waiting: number };

/** The counter of one pool: statements that run or wait, and transactions. */
type PoolCounter = {
  readonly name: string;
  /** Connections for statements. */
  readonly max: number;
  statements: number;
  /** Commits whose wait for the standby was cancelled. The driver does not say whose they were. */
  unconfirmed: number;
  transactions: () => { inUse: number; waiting: number };
};

const open = new Set<PoolCounter>();

/** Registers a pool's counter until the returned function is called. */
function openCounter(counter: PoolCounter): () => void {
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

/**
 * Wraps a pool so that its statements are counted from when they are sent or queued until their result. Those that are
 * under way when a wait for the standby is cancelled are rejected: one of them has committed on the primary alone.
 */
function countStatements(pool: Pool, counter: PoolCounter): Pool {
  const { unsafe } = pool;
  const counted = (...args: Parameters<Pool>) => watch(traceStatement(pool(...args), counter.name), counter);
  return Object.assign(counted, pool, {
    unsafe: (...args: Parameters<Pool['unsafe']>) =>
      watch(traceStatement(unsafe(...args), counter.name), counter),
  }) as unknown as Pool;
}

/** A fragment of another statement is never sent itself. */
function watch<T>(made: T, counter: PoolCounter): T {
  const statement = made as Partial<Statement>;
  const { handler, resolve, reject } = statement;
  if (handler === undefined || resolve === undefined || reject === undefined) return made;
  statement.handler = Object.assign((sent: Statement) => {
    counter.statements++;
    const { unconfirmed } = counter;
    let isAnswered = false;
    const answered = () => {
      if (!isAnswered) counter.statements--;
      isAnswered = true;
    };
    sent.resolve = (value) => {
      answered();
      return unconfirmed === counter.unconfirmed ? resolve(value) : reject(replicationUnknown());
    };
    sent.reject = (error) => {
      answered();
      return reject(error);
    };
    return handler(sent);
  }, handler);
  return made;
}
