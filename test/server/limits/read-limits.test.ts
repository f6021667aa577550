/** Reads are counted by the process that serves them while the database cannot count them. */
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { ErrorCode } from '../../../gen/attestation/v1/errors_pb.js';
import type { Principal } from '../../../src/server/core/principal.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { createReadLimits } from '../../../src/server/limits/read-limits.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

const LIMIT = 40;
const READER: Principal = {
  id: 'key_x',
  projectId: 'prj_x',
  environment: Environment.TEST,
  scopes: [],
  submissionWindows: [],
  readWindow: { windowSeconds: 1, limit: LIMIT },
};

t.test('without space for them reads go on, within the limit', async (t) => {
  const url = await testDatabase(t);
  const pool = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 10_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  await pool.unsafe(`
    CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$;
    CREATE TRIGGER reject BEFORE INSERT OR UPDATE ON rate_counter FOR EACH ROW EXECUTE FUNCTION reject()`);
  const limits = createReadLimits(pool);
  t.match(await limits.take(READER, 1), { limit: LIMIT, remaining: LIMIT - 1 });
  await until('a second has room for no more', () =>
    limits.take(READER, LIMIT / 2).then(
      () => false,
      (error) => error.code === ErrorCode.RATE_LIMIT_EXCEEDED,
    ),
  );
  t.same(await pool`SELECT FROM rate_counter`, []);
  await pool`DROP TRIGGER reject ON rate_counter`;
  await until('the database counts again', async () => {
    await limits.take(READER, 1).catch(() => {});
    return (await pool`SELECT FROM rate_counter`).length > 0;
  });
});
