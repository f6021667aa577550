import type { Config } from '../../config/config.js';
import { deriveKeyRing } from '../keys/key-ring.js';
import type { Idempotency } from '../rpc/idempotency.js';
import type { Pool } from '../store/database/connect.js';

/** What mutating handlers honour `Idempotency-Key` with, over an open database. */
export function openIdempotency({ secrets, idempotencyRetentionMs }: Config, pool: Pool): Idempotency {
  return {
    pool,
    keys: deriveKeyRing(secrets.secretKeys, 'idempotency'),
    retentionMs: idempotencyRetentionMs,
    clock: () => performance.now(),
  };
}
