/** The usual scene of a fault test: private servers, a foreign authority, an installation, a key. */
import type { Test } from 'tap';
import type { Pool } from '../../src/server/database/connect.js';
import { assertConsistent, type Consistency } from './judging/consistent.js';
import { type Installation, makeInstallation, makeUnlimitedKey } from './servers/installation.js';
import { type PrivateServers, type ServerDirs, startPrivateServers } from './servers/private-servers.js';
import { type FaultTsa, startFaultTsa } from './witnesses/fault-tsa.js';

export type Scene = {
  servers: PrivateServers;
  tsa: FaultTsa;
  installation: Installation;
  /** The test's own connection, past every proxy; valid while Postgres is not restarted elsewhere. */
  pool: Pool;
  apiKey: string;
  assertConsistent(t: Test, acknowledged: Consistency['acknowledged']): ReturnType<typeof assertConsistent>;
};

/** Sets it up until the test ends. `env` adds settings of the processes. */
export async function setScene(
  test: Test,
  { env = {}, dirs }: { env?: Record<string, string>; dirs?: ServerDirs } = {},
): Promise<Scene> {
  const servers = await startPrivateServers(test, dirs);
  const tsa = await startFaultTsa(test);
  const installation = await makeInstallation(test, {
    servers: { databaseUrl: servers.postgres.url, natsUrl: servers.nats.url },
    env: { WITNESSES: JSON.stringify([tsa.setting('foreign')]), ...env },
  });
  const verified = new Set<string>();
  const pool = installation.openPool();
  return {
    servers,
    tsa,
    installation,
    pool,
    apiKey: await makeUnlimitedKey(pool),
    assertConsistent: (t, acknowledged) =>
      assertConsistent(t, { pool, acknowledged, register: installation.register, verified }),
  };
}
