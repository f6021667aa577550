import { setTimeout as delay } from 'node:timers/promises';

/** The code of an error whose statement waits for a synchronous standby that is away. It may be committed. */
export const STANDBY_AWAY = 'STANDBY_AWAY';
/** The code of an error whose wait for the standby was cancelled. It is committed, perhaps on the primary alone. */
const REPLICATION_UNKNOWN = 'REPLICATION_UNKNOWN';
/** The code of an error of a connection that none of several servers is the primary for. */
export const NO_PRIMARY = 'NO_PRIMARY';

/** The SQLSTATE of a statement for whose write the database has no space. */
export const DISK_FULL = '53100';

/** Codes of a failed connection, the driver's and the system's, and of a commit that was not confirmed. */
const CONNECTION_CODES = new Set([
  STANDBY_AWAY,
  REPLICATION_UNKNOWN,
  NO_PRIMARY,
  'CONNECTION_CLOSED',
  'CONNECTION_DESTROYED',
  'CONNECTION_ENDED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
]);

/**
 * Read-only transaction, idle transaction timeout, serialization failure, deadlock, insufficient resources, lock not
 * available, query cancelled, I/O error, and internal error (class XX), for example a file that cannot grow.
 */
const UNAVAILABLE_STATES = /^(25006|25P03|40001|40P01|53...|55P03|57014|58...|XX...)$/;

/** Approximate duration of the retries of {@link retryWhileUnavailable}. */
const STORE_PATIENCE_MS = 10_000;
const RETRY_MS = 500;

/** Returns whether the connection failed, so that the statement's outcome is unknown. */
export function isConnectionLost(error: unknown): boolean {
  const code = errorCode(error);
  if (code === undefined) return false;
  return CONNECTION_CODES.has(code) || code.startsWith('08') || code.startsWith('57P');
}

/**
 * Returns whether the database is unavailable for any statement: unreachable, starting, read-only, out of space or
 * connections, or too slow. The statement's outcome may be unknown.
 */
export function isDatabaseUnavailable(error: unknown): boolean {
  return isConnectionLost(error) || UNAVAILABLE_STATES.test(errorCode(error) ?? '');
}

/** The error of a commit that may be on the primary alone. */
export function replicationUnknown(): Error {
  const message = 'the wait for the synchronous standby was cancelled: the commit may not be replicated';
  return Object.assign(new Error(message), { code: REPLICATION_UNKNOWN });
}

/** Returns the SQLSTATE or the driver's code of an error; undefined if it has none. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Retries `store` for about ten seconds while the database is unavailable, for data that must not be lost. */
export async function retryWhileUnavailable<T>(store: () => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  for (;;) {
    try {
      return await store();
    } catch (error) {
      const isOver = performance.now() - startedMs >= STORE_PATIENCE_MS - RETRY_MS;
      if (isOver || !isDatabaseUnavailable(error)) throw error;
      await delay(RETRY_MS);
    }
  }
}
