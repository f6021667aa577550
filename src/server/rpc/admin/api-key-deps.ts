import type { Principal } from '../../core/principal.js';
import type { RandomSource } from '../../core/random.js';
import type { Pool } from '../../store/database/connect.js';
import type { Cursors } from '../cursor.js';
import type { Idempotency } from '../idempotency.js';

/** A new key: the key itself, and what is stored of it. */
export type NewSecret = { secret: string; prefix: string; last4: string; hmac: Uint8Array };

/** What the handlers of ApiKeyService work with. */
export type ApiKeyDeps = {
  pool: Pool;
  idempotency: Idempotency;
  cursors: Cursors;
  clock: () => number;
  random: RandomSource;
  /** Every scope that a key can have, save the one that all have. */
  scopes: readonly string[];
  newSecret: (environment: Principal['environment']) => NewSecret;
  /** Told of each key whose rights have changed, or may have: after the commit, or when that has failed. */
  changed: (apiKeyId: string) => void;
};
