/** Three Postgres under Patroni in place of the one of a campaign and its standby. */
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import type { PatroniCluster } from '../../support/standby/patroni-cluster.js';
import type { Server } from './servers.js';

export type Patroni = {
  cluster: PatroniCluster;
  /** What a campaign needs of its Postgres; the faults of a single one cannot be made. */
  server: Server;
};

/** Starts them until `hooks`. Imported when needed: it gets etcd and Postgres's own programs. */
export async function openPatroni(hooks: ShutdownHooks): Promise<Patroni> {
  const { startPatroniCluster } = await import('../../support/standby/patroni-cluster.js');
  const teardown = (stop: () => Promise<unknown>) => hooks.add(async () => void (await stop()));
  const cluster = await startPatroniCluster({ teardown } as Parameters<typeof startPatroniCluster>[0]);
  const never = async () => {
    throw new Error('the nodes of Patroni have faults of their own');
  };
  const server: Server = {
    name: 'postgres',
    dataDir: '',
    url: () => cluster.url,
    links: new Map(),
    urlFor: () => cluster.url,
    kill: never,
    stop: never,
    start: async () => {},
    signal: never,
    configure: never,
    lasting: '',
    forget: never,
    crashes: () => 0,
  };
  return { cluster, server };
}
