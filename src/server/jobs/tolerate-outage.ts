import type { OutageLogs } from '../core/outage-log.js';
import { isDatabaseUnavailable } from '../database/database-errors.js';

/**
 * Runs a named piece of work. Returns `otherwise` while the database is unavailable, and logs the outage at growing
 * intervals; the caller retries. Rethrows every other error.
 */
export async function toleratingOutage<T>(
  outageLogs: OutageLogs,
  work: string,
  run: () => Promise<T>,
  otherwise: T,
): Promise<T> {
  const outageLog = outageLogs.for(work);
  try {
    const result = await run();
    outageLog.recovered({ work }, 'the database is available again');
    return result;
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    const { message: reason } = error as Error;
    outageLog.failed({ work, reason }, 'the database is unavailable; retrying');
    return otherwise;
  }
}
