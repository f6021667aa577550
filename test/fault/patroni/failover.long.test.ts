/** Three nodes of Patroni in strict synchronous mode: no matter which node fails, nothing that was acknowledged is lost. */
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { migrate } from '../../../src/server/database/migrate.js';
import { type Load, startLoad } from '../../support/calling/load.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { testServers } from '../../support/servers/shared-servers.js';
import { type Roles, startPatroniCluster, TTL_SECONDS } from '../../support/standby/patroni-cluster.js';
import { until } from '../../support/until.js';
import { letWitnessesBeAsked, untilWitnessed } from '../../support/wait-for-idle.js';
import { startFaultTsa } from '../../support/witnesses/fault-tsa.js';

const CLIENTS = 8;
const MORE = 100;
const LOOK_MS = 10;
const READ_PAUSE_MS = 25;

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
type Fault = { withinMs: number; begin: (roles: Roles) => Promise<() => Promise<void>>; isRead?: true };

/** The lease of the leader runs out, and another node is promoted. */
const FAILOVER_MS = (TTL_SECONDS + 2) * 1_000;
/** The others ask a leader that is silent before one is promoted. */
const SILENT_MS = FAILOVER_MS + 3_000;

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
    isRead: true,
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

for (const [what, { withinMs, begin, isRead }] of Object.entries(FAULTS)) {
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
    const reads = startReads(load.acknowledged[0]?.id ?? '');
    const mend = await begin(roles);
    await load.more(MORE);
    const gapMs = gap();
    const read = await reads();
    await mend();
    await cluster.untilHealthy();
    await load.more(MORE);
    await load.stop();
    const answers = JSON.stringify({ writes: [...load.statuses], reads: [...read] });
    t.comment(`no 201 for ${Math.round(gapMs)} ms; answers: ${answers}`);
    if (isRead) t.same([...read.keys()], [200], 'reads are served');
    t.ok(gapMs < withinMs, `writes are taken again within ${withinMs} ms`);
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

/** Reads a submission all the time. Returns what ends that and returns how often each status was answered. */
function startReads(id: string): () => Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let isOver = false;
  const reading = (async () => {
    while (!isOver) {
      const { status } = await fetch(`${api.baseUrl}/v1/attestations/${id}`, {
        headers: { authorization: `Bearer ${apiKey}` },
      });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      await delay(READ_PAUSE_MS);
    }
  })();
  return async () => {
    isOver = true;
    await reading;
    return statuses;
  };
}
