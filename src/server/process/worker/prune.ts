import type { Config } from '../../../config/config.js';
import { keepAuditPartitions } from '../../admin/store/audit.js';
import { pruneExchangedKeys } from '../../admin/store/exchanged-keys.js';
import { pruneInvitations } from '../../admin/store/invitations.js';
import { pruneLogoutTokens } from '../../admin/store/logout.js';
import { pruneSessions } from '../../admin/store/sessions.js';
import { pruneUsage, rollUpUsage } from '../../admin/store/usage.js';
import type { Pool } from '../../database/connect.js';
import { pruneIdempotencyKeys } from '../../idempotency/idempotency-keys.js';
import { pruneKeyLeases } from '../../idempotency/idempotency-leases.js';
import { pruneSignInAttempts } from '../../limits/sign-in-attempts.js';
import { pruneWorkers } from '../../pipeline/workers.js';
import { pruneDeliveries } from '../../webhooks/store/webhook-deliveries.js';
import { pruneRanges } from '../../webhooks/store/webhook-ranges.js';
import { pruneWebhooks } from '../../webhooks/store/webhooks.js';

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
  await pruneInvitations(pool);
  await pruneLogoutTokens(pool);
  await pruneSignInAttempts(pool);
  await pruneExchangedKeys(pool);
  while ((await pruneDeliveries(pool, webhookHistoryMs, ROWS)) === ROWS);
  await pruneRanges(pool, webhookHistoryMs, ROWS);
  await pruneWebhooks(pool, webhookHistoryMs);
  await keepAuditPartitions(pool, auditRetentionMs, new Date());
}
