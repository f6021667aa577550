import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { connectPool } from '../../../src/server/database/connect.js';
import { openLogDomain } from '../../../src/server/log/log-domain.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const pool = connectPool({
  url: await testDatabase(t),
  name: 'test',
  max: 1,
  statementTimeoutMs: 10_000,
});
t.teardown(() => pool.end());
const unset = { logDomain: undefined };

t.test('each installation makes a domain of its own, once', async (t) => {
  const dirs = [t.testdir({ a: {}, b: {} })].flatMap((dir) => [join(dir, 'a'), join(dir, 'b')]);
  const made = await Promise.all(dirs.map((dataDir) => openLogDomain(pool, { ...unset, dataDir })));
  for (const { logDomain, isNew } of made) {
    t.equal(isNew, true);
    t.match(logDomain, /^[0-9a-f]{20}\.attest\.internal$/);
  }
  t.not(made[0]?.logDomain, made[1]?.logDomain);
  for (const [i, dataDir] of dirs.entries()) {
    const again = await openLogDomain(pool, { ...unset, dataDir });
    t.same(again, { logDomain: made[i]?.logDomain, isNew: false });
  }
});

t.test("the setting takes precedence over the domain of the database's logs", async (t) => {
  const dataDir = t.testdir();
  await pool`INSERT INTO log (environment, epoch, origin, public_key)
             VALUES (1, 1, 'live.log.example.com', ''), (1, 2, 'live-2.log.example.com', '')`;
  t.teardown(() => pool`DELETE FROM log`);
  t.same(await openLogDomain(pool, { ...unset, dataDir }), { logDomain: 'log.example.com', isNew: false });
  await writeFile(join(dataDir, 'log-domain'), 'made.attest.internal\n');
  t.same(await openLogDomain(pool, { ...unset, dataDir }), { logDomain: 'log.example.com', isNew: false });
  const set = { logDomain: 'other.example.com', dataDir };
  t.same(await openLogDomain(pool, set), { logDomain: 'other.example.com', isNew: false });
});
