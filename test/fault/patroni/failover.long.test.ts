/** Three nodes of Patroni in strict synchronous mode: no matter which node fails, nothing that was acknowledged is lost. */
import t, { type Test } from 'tap';
import { migrate } from '../../../src/server/database/migrate.js';
import { type Load, startLoad } from '../../support/calling/load.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { testServers } from '../../support/servers/shared-servers.js';
import { type Roles, startPatroniCluster, TTL_SECONDS } from '../../support/standby/patroni-cluster.js';
import { PASSWORD } from '../../support/standby/patroni-node.js';
import { startSyncProxy } from '../../support/standby/sync-proxy.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const CLIENTS = 8;
const MORE = 100;
const LOOK_MS = 10;
const READ_EVERY_MS = 50;
/** A read that was sent to a server before that stopped. */
const READ_PATIENCE_MS = 20_000;

const cluster = await startPatroniCluster(t);
const { natsUrl } = await testServers();
const standby = await startSyncProxy(t, cluster.nodes);
const tsa = await startFaultTsa(t);
const installation = await makeInstallation(t, {
  servers: { databaseUrl: cluster.url, natsUrl },
  env: {
    WITNESSES: JSON.stringify([tsa.setting('foreign')]),
    DATABASE_READ_URL: `postgres://postgres:${PASSWORD}@${standby}/postgres`,
  },
});
const pool = installation.openPool();
await migrate(pool);
const apiKey = await makeUnlimitedKey(pool);
const api = await installation.startApi();
const worker = await installation.startWorker();
const verified = new Set<string>();

/** A fault: `begin` does it, and returns what makes the cluster whole again. */
type Fault = { withinMs: number; begin: (roles: Roles) => Promise<() => Promise<void>> };

/** The lease of the leader runs out, and another node is promoted. */
const FAILOVER_MS = (TTL_SECONDS + 2) * 1_000;
/** The others ask a leader that is silent before one is promoted. */
const SILENT_MS = FAILOVER_MS + 3_000;
/** Reads go to the synchronous standby two seconds after the primary fell silent. */
const READS_WITHIN_MS = 4_000;

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
    withinMs: FAILOVER_MS,
    begin: async ({ leader }) => {
      await leader.kill();
      await cluster.untilLedByOther(leader);
      return () => leader.start();
    },
  },
  'the leader is stopped until another node leads, and continued': {
    withinMs: SILENT_MS,
    begin: async ({ leader }) => {
      leader.standStill();
      await cluster.untilLedByOther(leader);
      return async () => leader.goOn();
    },
  },
  'the leader loses its Patroni, and goes on beside the next one': {
    withinMs: FAILOVER_MS,
    begin: async ({ leader }) => {
      await leader.killPatroni();
      await cluster.untilLedByOther(leader);
      return () => leader.start();
    },
  },
  'the network of the leader is cut until another node leads': {
    withinMs: SILENT_MS,
    begin: async ({ leader }) => {
      leader.setNetwork('stalls');
      await cluster.untilLedByOther(leader);
      return async () => leader.setNetwork('passes');
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
    const gap = watchGap(() => load.acknowledged.length);
    const reads = startReads(load.acknowledged[0]?.id ?? '');
    const readGap = watchGap(() => reads.statuses.get(200) ?? 0);
    const mend = await begin(roles);
    await load.more(MORE);
    const gapMs = gap();
    const readGapMs = readGap();
    await reads.stop();
    await mend();
    await cluster.untilHealthy();
    await load.more(MORE);
    await load.stop();
    const answers = JSON.stringify({ writes: [...load.statuses], reads: [...reads.statuses] });
    t.comment(
      `no 201 for ${Math.round(gapMs)} ms, no read for ${Math.round(readGapMs)} ms; answers: ${answers}`,
    );
    t.ok(gapMs < withinMs, `writes are taken again within ${withinMs} ms`);
    t.ok(readGapMs < READS_WITHIN_MS, `reads are served again within ${READS_WITHIN_MS} ms`);
    await assertKept(t, load);
  });
}

async function assertKept(t: Test, { acknowledged }: Load): Promise<void> {
  // Connections of the test are lost as well.
  await until('witnesses are asked', async () => {
    await letWitnessesBeAsked(pool);
    return true;
  });
  await untilWitnessed(pool);
  await assertConsistent(t, { pool, acknowledged, register: installation.register, verified });
  t.same(await pool`SELECT frozen_reason FROM log WHERE frozen_at IS NOT NULL`, [], 'no log is frozen');
  const fatal = [api, worker].flatMap(({ lines }) => lines.filter(({ level }) => level === 'fatal'));
  t.same(fatal, [], 'no process found a contradiction');
}

/** Returns what ends the watch and returns the longest time in which the count did not grow, in ms. */
function watchGap(counted: () => number): () => number {
  let [count, sinceMs, longestMs] = [counted(), performance.now(), 0];
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - sinceMs);
    if (counted() === count) return;
    [count, sinceMs] = [counted(), performance.now()];
  }, LOOK_MS);
  return () => {
    clearInterval(timer);
    return longestMs;
  };
}

/** Reads a submission at a steady pace until `stop`, and counts how often each status came; 0 is none. */
function startReads(id: string): { statuses: Map<number, number>; stop: () => Promise<void> } {
  const statuses = new Map<number, number>();
  const reading = new Set<Promise<void>>();
  const read = async () => {
    const status = await fetch(`${api.baseUrl}/v1/attestations/${id}`, {
      headers: { authorization: `Bearer ${apiKey}` },
      signal: AbortSignal.timeout(READ_PATIENCE_MS),
    }).then(
      (answer) => answer.status,
      () => 0,
    );
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };
  const timer = setInterval(() => {
    const one = read().finally(() => reading.delete(one));
    reading.add(one);
  }, READ_EVERY_MS);
  return {
    statuses,
    stop: async () => {
      clearInterval(timer);
      await Promise.all(reading);
    },
  };
}
