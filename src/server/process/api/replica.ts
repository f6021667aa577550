import type { Config } from '../../../config/config.js';
import type { Logger } from '../../core/logger.js';
import type { ShutdownHooks } from '../../core/shutdown.js';
import { openReadReplica, type ReadReplica } from '../../database/read-replica.js';
import type { Check } from '../../ops/ops-listener.js';

const STATEMENT_TIMEOUT_MS = 5_000;

/** Opens the standby that serves reads while no primary responds. Without one they go to the primary only. */
export function openReplica(
  { databaseUrl: url, databaseReadUrl: readUrl, poolSize: max }: Config,
  log: Logger,
  hooks: ShutdownHooks,
): Omit<ReadReplica, 'close'> {
  if (readUrl === undefined)
    return { readsOf: (pool) => pool, impatient: (pool) => pool, reason: () => undefined };
  const onChange = (reason: string | undefined) => {
    if (reason === undefined) log.info('the primary of the database responds again');
    else log.error({ reason }, 'the primary of the database does not respond');
  };
  const replica = openReadReplica({ url, readUrl, max, statementTimeoutMs: STATEMENT_TIMEOUT_MS, onChange });
  hooks.add(replica.close);
  return replica;
}

/** The check of `/readyz`: reads are served without a primary, so the process stays ready. */
export function primaryCheck({ reason }: Pick<ReadReplica, 'reason'>): Check {
  return { name: 'primary', isWarning: true, check: async () => reason() };
}
