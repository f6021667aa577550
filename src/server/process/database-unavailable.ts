import { type ApiError, unavailable } from '../core/errors.js';
import type { Logger } from '../core/logger.js';
import { createOutageLog, type OutageLog } from '../core/outage-log.js';
import type { ServiceEntry } from '../http/services.js';
import { isDatabaseUnavailable } from '../store/database/database-errors.js';

const RETRY_SECONDS = 2;

/** Makes functions tell callers to come back while the database is away, in place of the driver's error. */
export type DatabaseAway = {
  /** `work` names what is done, for the log. */
  tell<A extends readonly unknown[], R>(
    work: string,
    run: (...args: A) => Promise<R>,
  ): (...args: A) => Promise<R>;
  /** The same for every handler of a service. */
  tellAll(service: ServiceEntry): ServiceEntry;
};

/** @param log gets lines at growing intervals, since the caller's answer does not say what failed */
export function createDatabaseAway(log: Logger): DatabaseAway {
  const outageLog = createOutageLog(log, () => performance.now());
  const tell: DatabaseAway['tell'] =
    (work, run) =>
    async (...args) => {
      try {
        return await run(...args);
      } catch (error) {
        throw isDatabaseUnavailable(error) ? away(outageLog, work, error) : error;
      }
    };
  return {
    tell,
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
