import { setTimeout as delay } from 'node:timers/promises';

/** Codes of a failed connection: the driver's and the system's. */
const CONNECTION_CODES = new Set([
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

/** How long {@link retryWhileUnavailable} retries, approximately. */
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
