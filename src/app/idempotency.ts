import type { Config } from '../config.js';
import type { Idempotency } from '../rpc/idempotent.js';
import { deriveKeyRing } from '../secret-key.js';
import type { Pool } from '../store/connect.js';

/** What mutating handlers honour `Idempotency-Key` with, over an open database. */
export function openIdempotency({ secrets, idempotencyRetentionMs }: Config, pool: Pool): Idempotency {
  return {
    pool,
    keys: deriveKeyRing(secrets.secretKeys, 'idempotency'),
    retentionMs: idempotencyRetentionMs,
    clock: () => performance.now(),
  };
}
