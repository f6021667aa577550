import type { Pool } from '../../database/connect.js';
import { type Log, listLogs } from '../../log/store/logs.js';
import { ArchiveError } from './archive-error.js';

/** The log of an origin. Throws ArchiveError, which names those that there are. */
export async function findLog(pool: Pool, origin: string): Promise<Log> {
  const logs = await listLogs(pool);
  const log = logs.find((one) => one.origin === origin);
  if (log !== undefined) return log;
  const origins = logs.map((one) => one.origin).join(', ') || 'none';
  throw new ArchiveError(`the database has no log ${origin}; its logs: ${origins}`);
}
