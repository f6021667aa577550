import type { Config } from '../../../config/config.js';
import type { Pool } from '../../store/database/connect.js';
import { pruneIdempotencyKeys } from '../../store/idempotency.js';
import { pruneKeyLeases } from '../../store/idempotency-leases.js';
import { keepAuditPartitions } from '../../store/projects/audit.js';
import { pruneSessions } from '../../store/projects/sessions.js';
import { pruneSignInAttempts } from '../../store/projects/sign-in-attempts.js';
import { pruneUsage, rollUpUsage } from '../../store/projects/usage.js';
import { pruneDeliveries } from '../../store/webhooks/webhook-deliveries.js';
import { pruneRanges } from '../../store/webhooks/webhook-ranges.js';
import { pruneWebhooks } from '../../store/webhooks/webhooks.js';
import { pruneWorkers } from '../../store/workers.js';

/** Rows per statement, so that none holds its locks for long. */
const ROWS = 10_000;

/** Deletes expired rows and rolls usage up into hours and days. */
export async function prune(
  pool: Pool,
  {
    idempotencyRetentionMs,
    webhookHistoryMs,
    auditRetentionMs,
  }: Pick<Config, 'idempotencyRetentionMs' | 'webhookHistoryMs' | 'auditRetentionMs'>,
): Promise<void> {
  while ((await rollUpUsage(pool, ROWS)) === ROWS);
  await pruneUsage(pool);
  await pruneWorkers(pool);
  await pruneIdempotencyKeys(pool, idempotencyRetentionMs, ROWS);
  await pruneKeyLeases(pool);
  await pruneSessions(pool);
  await pruneSignInAttempts(pool);
  while ((await pruneDeliveries(pool, webhookHistoryMs, ROWS)) === ROWS);
  await pruneRanges(pool, webhookHistoryMs, ROWS);
  await pruneWebhooks(pool, webhookHistoryMs);
  await keepAuditPartitions(pool, auditRetentionMs, new Date());
}
