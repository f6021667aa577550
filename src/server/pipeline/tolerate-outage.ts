import type { OutageLogs } from '../core/outage-log.js';
import { isDatabaseUnavailable } from '../store/database/database-errors.js';

/**
 * Does some work, by its name. While the database is away that is said at growing intervals and the answer is
 * `otherwise`: whoever asks comes again. What fails for another reason is thrown.
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
    outageLog.recovered({ work }, 'the database can be used again');
    return result;
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error;
    const { message: reason } = error as Error;
    outageLog.failed({ work, reason }, 'the database cannot be used now; this is tried again');
    return otherwise;
  }
}
