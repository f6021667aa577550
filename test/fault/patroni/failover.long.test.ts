/** Three nodes of Patroni in strict synchronous mode: whatever node fails, nothing that was acknowledged is lost. */
import t, { type Test } from 'tap';
import { migrate } from '../../../src/server/database/migrate.js';
import { type Load, startLoad } from '../../support/calling/load.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { testServers } from '../../support/servers/shared-servers.js';
import { type Roles, startPatroniCluster, TTL_SECONDS } from '../../support/standby/patroni-cluster.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const CLIENTS = 8;
const MORE = 100;
const LOOK_MS = 10;

const cluster = await startPatroniCluster(t);
const { natsUrl } = await testServers();
const tsa = await startFaultTsa(t);
const installation = await makeInstallation(t, {
  servers: { databaseUrl: cluster.url, natsUrl },
  env: { WITNESSES: JSON.stringify([tsa.setting('foreign')]) },
});
const pool = installation.openPool();
await migrate(pool);
const apiKey = await makeUnlimitedKey(pool);
const api = await installation.startApi();
const worker = await installation.startWorker();
const verified = new Set<string>();

/** A fault: `begin` does it, and returns what makes the cluster whole again. */
type Fault = { withinMs: number; begin: (roles: Roles) => Promise<() => Promise<void>> };

const FAULTS: Record<string, Fault> = {
  'the leader hands over to the synchronous standby': {
    withinMs: 6_000,
    begin: async ({ leader, synchronous }) => {
      await cluster.switchOver(leader, synchronous);
      return async () => {};
    },
  },
  'the synchronous standby is killed with its Patroni': {
    withinMs: 3_000,
    begin: async ({ synchronous }) => {
      await synchronous.kill();
      return () => synchronous.start();
    },
  },
  'the leader is killed with its Patroni': {
    withinMs: (TTL_SECONDS + 2) * 1_000,
    begin: async ({ leader }) => {
      await leader.kill();
      await cluster.untilLedByOther(leader);
      return () => leader.start();
    },
  },
};

for (const [what, { withinMs, begin }] of Object.entries(FAULTS)) {
  t.test(`nothing acknowledged is lost when ${what}`, async (t) => {
    const roles = await cluster.untilHealthy();
    const load = startLoad({
      apis: () => [api.baseUrl],
      apiKey,
      clients: CLIENTS,
      most: Number.POSITIVE_INFINITY,
    });
    await load.more(MORE);
    const gap = watchGap(load);
    const mend = await begin(roles);
    await load.more(MORE);
    const gapMs = gap();
    await mend();
    await cluster.untilHealthy();
    await load.more(MORE);
    await load.stop();
    t.comment(`no 201 for ${Math.round(gapMs)} ms; answers: ${JSON.stringify([...load.statuses])}`);
    t.ok(gapMs < withinMs, `writes are taken again within ${withinMs} ms`);
    await assertKept(t, load);
  });
}

async function assertKept(t: Test, { acknowledged }: Load): Promise<void> {
  await letWitnessesBeAsked(pool);
  await untilWitnessed(pool);
  await assertConsistent(t, { pool, acknowledged, register: installation.register, verified });
  t.same(await pool`SELECT frozen_reason FROM log WHERE frozen_at IS NOT NULL`, [], 'no log is frozen');
  const fatal = [api, worker].flatMap(({ lines }) => lines.filter(({ level }) => level === 'fatal'));
  t.same(fatal, [], 'no process found a contradiction');
}

/** Returns what ends the watch and returns the longest time without an acknowledgement, in ms. */
function watchGap({ acknowledged }: Load): () => number {
  let [count, sinceMs, longestMs] = [acknowledged.length, performance.now(), 0];
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - sinceMs);
    if (acknowledged.length === count) return;
    [count, sinceMs] = [acknowledged.length, performance.now()];
  }, LOOK_MS);
  return () => {
    clearInterval(timer);
    return longestMs;
  };
}
