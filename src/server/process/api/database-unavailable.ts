import { unavailable } from '../../core/errors.js';
import type { Logger } from '../../core/logger.js';
import { createOutageLog } from '../../core/outage-log.js';
import { errorCode, isDatabaseUnavailable, STANDBY_AWAY } from '../../database/database-errors.js';

const RETRY_SECONDS = 2;

/** Returns the error for the caller of a thrown one; `work` names in the log what failed. */
type ExplainError = (work: string, error: unknown) => unknown;

/**
 * Creates the function that replaces the driver's connection errors with `service.unavailable` and returns others.
 *
 * @param log gets the reason at growing intervals, since responses do not contain it
 */
export function explainDatabaseErrors(log: Logger): ExplainError {
  const outageLog = createOutageLog(log, () => performance.now());
  return (work, error) => {
    if (!isDatabaseUnavailable(error)) return error;
    // Its start and its end are logged by the watch over the standby.
    if (errorCode(error) === STANDBY_AWAY) return unavailable((error as Error).message, RETRY_SECONDS, error);
    outageLog.failed({ work, reason: (error as Error).message }, 'the database is unavailable');
    return unavailable('the service cannot reach its database now', RETRY_SECONDS, error);
  };
}
