import t from 'tap';
import { connectPool } from '../../../src/server/database/connect.js';
import { clockCheck } from '../../../src/server/ops/clock-check.js';
import { makeInstallation } from '../../support/servers/installation.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

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

/** What Node runs first. */
const A_DAY_LATE = 'data:text/javascript,const{now}=Date;Date.now=()=>now()-864e5';

t.test('a worker whose clock is a day late is not ready', async (t) => {
  const installation = await makeInstallation(t, { env: { NODE_OPTIONS: `--import=${A_DAY_LATE}` } });
  const { opsUrl } = await installation.startWorker();
  await until('it is not ready', async () => {
    const answer = await fetch(`${opsUrl}/readyz`);
    return answer.status === 503 && /"clock".*clock is -86[34]\d\d\.\d s ahead/.test(await answer.text());
  });
});
