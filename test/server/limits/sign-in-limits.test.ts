/** Attempts to sign in, counted by address. */
import t, { type Test } from 'tap';
import { connectPool } from '../../../src/server/database/connect.js';
import { createSignInLimits } from '../../../src/server/limits/sign-in-limits.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const PEER = '192.0.2.1';
const REFUSAL = { message: /^signing in failed 10 times in a minute from this address; try again in \d+ s$/ };

async function openLimits(t: Test) {
  const pool = connectPool({ url: await testDatabase(t), name: 'test', max: 2, statementTimeoutMs: 5_000 });
  t.teardown(() => pool.end({ timeout: 1 }));
  let nowMs = Date.now();
  const limits = createSignInLimits(pool, () => nowMs);
  const counted = async () => {
    const [row] = await pool<{ count: number }[]>`SELECT count FROM sign_in_attempt WHERE peer = ${PEER}`;
    return row?.count;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  for (let n = 0; n < 10; n++) await limits.count(PEER);
  await t.rejects(limits.count(PEER), REFUSAL);
  return { pool, limits, counted, pass };
}

t.test('an address beyond ten attempts is rejected from memory until its minute ends', async (t) => {
  const { pool, limits, counted, pass } = await openLimits(t);
  for (let n = 0; n < 5; n++) await t.rejects(limits.count(PEER), REFUSAL);
  t.equal(await counted(), 11, 'the database was not asked again');
  await limits.count('192.0.2.2');
  await limits.count(undefined);
  pass(61_000);
  await pool`UPDATE sign_in_attempt SET until = clock_timestamp()`;
  await limits.count(PEER);
  t.equal(await counted(), 1);
});

t.test('without the database a rejected address stays rejected', async (t) => {
  const { pool, limits } = await openLimits(t);
  await pool.end({ timeout: 1 });
  await t.rejects(limits.count(PEER), REFUSAL);
});
