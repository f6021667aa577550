import t from 'tap';
import { connectPool } from '../../../src/server/database/connect.js';
import { clockCheck } from '../../../src/server/ops/clock-check.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const url = await testDatabase(t);
const pool = connectPool({ url, name: 'test', max: 1, statementTimeoutMs: 10_000 });
t.teardown(() => pool.end());
const { check } = clockCheck(pool);
const { now } = Date;
const read = async (shiftMs: number) => {
  Date.now = () => now() + shiftMs;
  return check(AbortSignal.timeout(10_000)).finally(() => {
    Date.now = now;
  });
};

t.test('a process whose clock is not that of the database is not ready', async (t) => {
  t.equal(await read(0), undefined);
  t.equal(await read(-4_000), undefined);
  t.match(
    await read(86_400_000),
    /^this machine's clock is 86[34]\d\d\.\d s ahead of the database's: run an NTP/,
  );
  t.match(await read(-86_400_000), /clock is -86[34]\d\d\.\d s ahead/);
});
