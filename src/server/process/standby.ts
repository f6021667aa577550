import type { Logger } from '../core/logger.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { connectPool, type Pool } from '../database/connect.js';
import { type StandbyWatch, watchStandby } from '../database/standby-watch.js';
import type { Check } from '../ops/ops-listener.js';

const LOCAL_CONNECTIONS = 4;
const LOCAL_TIMEOUT_MS = 3_000;

/** The watch of a synchronous standby, shared by the roles of a process. */
export type Standby = {
  standby: StandbyWatch;
  /** Runs transactions: that of the watch. */
  guard: StandbyWatch['guard'];
  localPool: Pool;
};

/**
 * Opens the watch over the synchronous standby, which logs when that stops to answer, and the pool of what need not survive
 * a failover. Its commits do not wait for the standby: in an API process all that admits a call (keys, sessions, windows of
 * reads, times of last use, sign-ins), in a worker signs of life and renewals of leases.
 */
export function openStandby(
  { databaseUrl, log }: { databaseUrl: string; log: Logger },
  hooks: ShutdownHooks,
): Standby {
  const standby = openWatch(databaseUrl, log);
  hooks.add(standby.close);
  const localPool = connectPool({
    url: databaseUrl,
    name: 'local',
    max: LOCAL_CONNECTIONS,
    statementTimeoutMs: LOCAL_TIMEOUT_MS,
    commitsLocally: true,
  });
  hooks.add(() => localPool.end({ timeout: 5 }));
  return { standby, guard: standby.guard, localPool };
}

function openWatch(databaseUrl: string, log: Logger): StandbyWatch {
  return watchStandby({
    url: databaseUrl,
    onChange: (reason) => {
      if (reason === undefined) log.info("the database's synchronous standby answers again");
      else log.error({ reason }, 'nothing is stored until the standby answers; reads are served');
    },
  });
}

/** The check of `/readyz`: reads are served without a standby, so the process stays ready. */
export function standbyCheck({ reason }: StandbyWatch): Check {
  return { name: 'standby', isWarning: true, check: async () => reason() };
}
