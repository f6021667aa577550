/** JetStream of a campaign: three nats-servers as a cluster, each behind a link for each process. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import { type Link, startLink } from '../../support/breaking/link.js';
import { type NatsNode, startNatsCluster } from '../../support/servers/nats-cluster.js';
import type { Server } from './servers.js';

/** All nodes as one server, and each by itself. */
export type Nats = Server & {
  nodes: readonly NatsNode[];
  /** The node that leads the stream of jobs; any other while none does. */
  leader(): Promise<NatsNode>;
};

const RETRY_MS = 500;

/** Starts them in `dir` until `hooks`. @param users names of the processes that get a link to each node */
export async function openNats(dir: string, users: readonly string[], hooks: ShutdownHooks): Promise<Nats> {
  const state = { closed: false, crashes: 0 };
  const teardown = (stop: () => Promise<unknown>) => hooks.add(async () => void (await stop()));
  const onCrash = (node: NatsNode) => {
    state.crashes++;
    void startAgain(node, () => state.closed);
  };
  const { nodes, url, withManager } = await startNatsCluster({ teardown }, { dir, onCrash });
  hooks.add(async () => {
    state.closed = true;
  });
  const links = new Map<string, Link[]>();
  for (const user of users) {
    const own = await Promise.all(nodes.map(({ port }) => startLink({ host: '127.0.0.1', port })));
    for (const link of own) hooks.add(link.close);
    links.set(user, own);
  }
  const never = async () => {
    throw new Error('nats-server has no such settings');
  };
  const each = async (run: (node: NatsNode) => Promise<void>) => void (await Promise.all(nodes.map(run)));
  return {
    name: 'nats',
    dataDir: dir,
    url: () => url,
    links: new Map([...links].map(([user, own]) => [user, asOne(own)])),
    urlFor: (user) =>
      links
        .get(user)!
        .map(({ port }) => `nats://127.0.0.1:${port}`)
        .join(','),
    kill: () => each((node) => node.kill()),
    stop: () => each((node) => node.stop()),
    start: () => each((node) => startAgain(node, () => state.closed)),
    signal: (signal) => {
      for (const node of nodes) node.signal(signal);
    },
    configure: never,
    lasting: '',
    forget: () => each((node) => node.forget()),
    crashes: () => state.crashes,
    nodes,
    leader: async () => {
      const info = await withManager((manager) => manager.streams.info('JOBS')).catch(() => undefined);
      return nodes.find(({ name }) => name === info?.cluster?.leader) ?? nodes[0]!;
    },
  };
}

/** A disk without room, for one, ends a server: whoever looks after it starts it again. */
async function startAgain(node: NatsNode, isClosed: () => boolean): Promise<void> {
  while (!isClosed()) {
    try {
      return await node.start();
    } catch {
      await delay(RETRY_MS);
    }
  }
}

/** What is done to it is done to all. */
function asOne(links: readonly Link[]): Link {
  const each = (run: (link: Link) => void) => {
    for (const link of links) run(link);
  };
  return {
    port: links[0]!.port,
    point: (target) => each((link) => link.point(target)),
    set: (mode) => each((link) => link.set(mode)),
    delay: (ms) => each((link) => link.delay(ms)),
    cut: (how) => each((link) => link.cut(how)),
    close: async () => void (await Promise.all(links.map((link) => link.close()))),
  };
}
