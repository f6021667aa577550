import { type ApiError, unavailable } from '../errors.js';
import type { ServiceEntry } from '../http/services.js';
import type { Logger } from '../logger.js';
import { recover, type Soon } from '../soon.js';
import { isDatabaseAway } from '../store/database-errors.js';

const RETRY_SECONDS = 2;

/** Makes functions tell callers to come back while the database is away, in place of the driver's error. */
export type DatabaseAway = {
  tell<A extends readonly unknown[], R>(run: (...args: A) => Soon<R>): (...args: A) => Soon<R>;
  /** The same for every handler of a service. */
  tellAll(service: ServiceEntry): ServiceEntry;
};

/** @param log gets a line for each failure, since the caller's answer does not say what failed */
export function createDatabaseAway(log: Logger): DatabaseAway {
  const fail = (error: unknown): never => {
    throw isDatabaseAway(error) ? away(log, error) : error;
  };
  const tell: DatabaseAway['tell'] =
    (run) =>
    (...args) =>
      recover(() => run(...args), fail);
  return {
    tell,
    tellAll: ({ desc, handlers }) => ({
      desc,
      handlers: Object.fromEntries(Object.entries(handlers).map(([name, run]) => [name, tell(run)])),
    }),
  };
}

function away(log: Logger, error: unknown): ApiError {
  log.warn({ reason: (error as Error).message }, 'the database cannot be used now');
  return unavailable('the service cannot reach its database now', RETRY_SECONDS, error);
}
