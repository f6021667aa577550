import { setTimeout as delay } from 'node:timers/promises';

/** The driver's own codes, and the system's, of a connection that failed. */
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
 * Read-only transaction, transaction that stood still too long, serialization failure, deadlock, no resources, lock not
 * available, cancelled, I/O error, and the server's own trouble (class XX), as when a file may not grow.
 */
const AWAY_STATES = /^(25006|25P03|40001|40P01|53...|55P03|57014|58...|XX...)$/;

/** How long {@link untilStored} goes on, by and large. */
export const STORE_PATIENCE_MS = 10_000;
const RETRY_MS = 500;
const MAX_TRIES = STORE_PATIENCE_MS / RETRY_MS;

/** Whether an error says that the connection failed, so that the statement's outcome is not known. */
export function isConnectionLost(error: unknown): boolean {
  const code = errorCode(error);
  if (code === undefined) return false;
  return CONNECTION_CODES.has(code) || code.startsWith('08') || code.startsWith('57P');
}

/**
 * Whether an error says that the database cannot do its work now, whatever the statement: away, starting, read-only,
 * out of space or connections, or too slow. Its outcome may or may not be known.
 */
export function isDatabaseAway(error: unknown): boolean {
  return isConnectionLost(error) || AWAY_STATES.test(errorCode(error) ?? '');
}

/** The SQLSTATE or the driver's code of an error, when it has one. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Stores what must not be lost because the database is away for a moment: tries again for ten seconds while it is. */
export async function untilStored<T>(store: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await store();
    } catch (error) {
      if (tries === MAX_TRIES || !isDatabaseAway(error)) throw error;
      await delay(RETRY_MS);
    }
  }
}
