/** Three Postgres under Patroni and one etcd, in strict synchronous mode: nodes that fail, and fail over by themselves. */
import { execFile } from 'node:child_process';
import { chmod, chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { findPostgresUser } from '../../../src/server/embedded/postgres-user.js';
import { patroniPython } from '../foreign/patroni/patroni.js';
import { dataFolder } from '../servers/data-folder.js';
import { findFreePort } from '../servers/free-port.js';
import { until } from '../until.js';
import { startEtcd } from './etcd.js';
import { openNode, PASSWORD, type PatroniNode, type Surroundings } from './patroni-node.js';

const execute = promisify(execFile);

/** What a member is by Patroni's own account. */
type Member = { name: string; role: string; state: string };

export type PatroniCluster = {
  /** Of all three nodes, as DATABASE_URL has it. */
  url: string;
  nodes: readonly PatroniNode[];
  /** Waits until there is a leader. Of it alone, past the links. */
  leaderUrl(): Promise<string>;
  /**
   * Waits until there is a leader with a synchronous standby, all nodes that run stream from it, and that stays so for a
   * round of Patroni and another: nobody takes over from a leader that fails while it chooses its standby.
   */
  untilHealthy(): Promise<Roles>;
  /** `patronictl switchover` from the leader to that node; resolves once Patroni says that it is done. */
  switchOver(from: PatroniNode, to: PatroniNode): Promise<void>;
  /** Waits until another node leads. */
  untilLedByOther(old: PatroniNode): Promise<PatroniNode>;
};

export type Roles = { leader: PatroniNode; synchronous: PatroniNode; other: PatroniNode };

/** The shortest times that Patroni takes, in seconds. */
export const TTL_SECONDS = 20;
const TIMES = { ttl: TTL_SECONDS, loop_wait: 1, retry_timeout: 3 };

/** Where nodes keep what they agree on: members, leader, settings. */
const SCOPE = 'attest';
const NAMES = ['a', 'b', 'c'];
const DATABASE = 'postgres';
/** The command `patronictl`, wherever its script is. */
const PATRONICTL = 'from patroni.ctl import ctl; ctl()';

/** Starts it until the test ends. */
export async function startPatroniCluster(test: Pick<Test, 'teardown'>): Promise<PatroniCluster> {
  // In memory where that is large: if etcd waits for a busy disk for three seconds, the leader demotes itself.
  const dir = await mkdtemp(join(dataFolder(), 'attest-patroni-'));
  // Teardowns run in reverse: the servers end before their folder is removed.
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  await chmod(dir, 0o755);
  const user = await findPostgresUser();
  const etcd = await startEtcd(test, join(dir, 'etcd'));
  const around: Surroundings = { python: await patroniPython(), user, etcd, scope: SCOPE, times: TIMES };
  const nodes: PatroniNode[] = [];
  for (const name of NAMES) {
    const home = join(dir, name);
    await mkdir(home, { mode: 0o700 });
    if (user) await chown(home, user.uid, user.gid);
    nodes.push(await openNode(test, around, { name, home, ports: await findPorts() }));
  }
  await Promise.all(nodes.map((node) => node.start()));
  const cluster = manage(around, nodes);
  await cluster.untilHealthy();
  return cluster;
}

function manage({ python, scope }: Surroundings, nodes: readonly PatroniNode[]): PatroniCluster {
  const nodeNamed = (name: string | undefined) => nodes.find((node) => node.name === name);
  const rolesOf = (members: readonly Member[]): Roles | undefined => {
    const streaming = members.filter(({ state }) => state === 'streaming');
    const leader = nodeNamed(
      members.find(({ role, state }) => role === 'leader' && state === 'running')?.name,
    );
    const synchronous = nodeNamed(streaming.find(({ role }) => role === 'sync_standby')?.name);
    const other = nodes.find((node) => node !== leader && node !== synchronous);
    const running = nodes.filter((node) => node.isUp()).length;
    if (!leader || !synchronous || !other || streaming.length < running - 1) return undefined;
    return { leader, synchronous, other };
  };
  const cluster: PatroniCluster = {
    url: `postgres://postgres:${PASSWORD}@${nodes.map(({ address }) => address).join(',')}/${DATABASE}`,
    nodes,
    leaderUrl: async () => {
      const { leader } = rolesOf(await listMembers(nodes)) ?? (await cluster.untilHealthy());
      return leader.url;
    },
    untilHealthy: () =>
      until('a leader and its standbys', async () => {
        const first = rolesOf(await listMembers(nodes));
        if (first === undefined) return undefined;
        await delay(2_000 * TIMES.loop_wait);
        const then = rolesOf(await listMembers(nodes));
        return then?.leader === first.leader && then.synchronous === first.synchronous && then;
      }),
    switchOver: async (from, to) => {
      const how = ['switchover', scope, '--leader', from.name, '--candidate', to.name, '--force'];
      await execute(python, ['-c', PATRONICTL, '-c', from.configFile, ...how]);
    },
    untilLedByOther: (old) =>
      until(`another node than ${old.name} leads`, async () => {
        for (const node of nodes) if (node !== old && (await node.isPrimary())) return node;
        return undefined;
      }),
  };
  return cluster;
}

/** What the first node that answers says of all. */
async function listMembers(nodes: readonly PatroniNode[]): Promise<Member[]> {
  for (const { apiUrl, isUp } of nodes) {
    if (!isUp()) continue;
    const answer = await fetch(`${apiUrl}/cluster`, { signal: AbortSignal.timeout(1_000) }).catch(
      () => undefined,
    );
    if (answer?.ok) return ((await answer.json()) as { members: Member[] }).members;
  }
  return [];
}

async function findPorts(): Promise<{ postgres: number; api: number }> {
  return { postgres: await findFreePort(), api: await findFreePort() };
}
