import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { type Measurement, meterOf, type RequestMeasures, withRoles } from '../roles.js';
import type { Contender } from '../rounds.js';
import { openPool } from '../services.js';
import { poster } from './requests.js';

const SMALL = 200;

/**
 * Creates with Idempotency-Key over a table of keys that is new, small or large, beside creates without. A plan that
 * Postgres made for one of these can be wrong for another.
 */
export async function measureKeyed(deps: RequestMeasures): Promise<Measurement> {
  const { services, options } = deps;
  return withShutdownHooks((hooks) => {
    const pool = openPool(services.databaseUrl, hooks);
    return withRoles(deps, 'keyed', async ({ api, worker }) => {
      const post = poster(deps);
      const meter = meterOf(services, api, worker);
      const path = '/v1/attestations';
      const keyed = (name: string, prepare: () => Promise<void>): Contender => ({
        name,
        run: async (seconds) => {
          await prepare();
          return post(api, meter, { path, keyed: true })(seconds);
        },
      });
      return {
        contenders: [
          { name: 'no key', run: post(api, meter, { path }) },
          keyed('no keys before', () => makeKeys(pool, 0)),
          keyed(`${SMALL} keys before`, () => makeKeys(pool, SMALL)),
          keyed(`${options.keys} keys before`, () => makeKeys(pool, options.keys)),
        ],
      };
    });
  });
}

/** Leaves so many keys, and a table that was analysed with them; a new one was never. */
async function makeKeys(pool: Pool, count: number): Promise<void> {
  await pool`TRUNCATE idempotency_key`;
  if (count > 0) {
    await pool`
      INSERT INTO idempotency_key (api_key_id, key, request_hash, resource_id, created_at)
      SELECT 'key_bench', encode(h.hash, 'hex'), h.hash, 'sub_' || i, now()
      FROM generate_series(1, ${count}::bigint) i, LATERAL (SELECT sha256(int8send(i)) AS hash) h`;
    await pool`ANALYZE idempotency_key`;
  }
}
