import { type ApiError, unavailable } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import { createOutageLog, type OutageLog } from '../core/outage-log.js';
import type { ServiceEntry } from '../http/services.js';
import { isDatabaseUnavailable } from '../store/database/database-errors.js';

const RETRY_SECONDS = 2;

/** Replaces the driver's connection errors with `service.unavailable`. */
type DatabaseAway = {
  /** Wraps one function; `work` names it in the log. */
  tell<A extends readonly unknown[], R>(
    work: string,
    run: (...args: A) => Promise<R>,
  ): (...args: A) => Promise<R>;
  /** The same for an error that was thrown; others it returns. */
  explain(work: string, error: unknown): unknown;
  /** Wraps every handler of a service. */
  tellAll(service: ServiceEntry): ServiceEntry;
};

/** @param log gets the reason at growing intervals, since responses do not contain it */
export function createDatabaseAway(log: Logger): DatabaseAway {
  const outageLog = createOutageLog(log, () => performance.now());
  const explain: DatabaseAway['explain'] = (work, error) =>
    isDatabaseUnavailable(error) ? away(outageLog, work, error) : error;
  const tell: DatabaseAway['tell'] =
    (work, run) =>
    async (...args) => {
      try {
        return await run(...args);
      } catch (error) {
        throw explain(work, error);
      }
    };
  return {
    tell,
    explain,
    tellAll: ({ desc, handlers }) => ({
      desc,
      handlers: Object.fromEntries(Object.entries(handlers).map(([name, run]) => [name, tell(name, run)])),
    }),
  };
}

function away(outageLog: OutageLog, work: string, error: unknown): ApiError {
  outageLog.failed({ work, reason: (error as Error).message }, 'the database is unavailable');
  return unavailable('the service cannot reach its database now', RETRY_SECONDS, error);
}
