/** A process that stops between the two parts in which the driver sends a new statement holds no lock for long. */
import { connect } from 'node:net';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { connectPool } from '../../../src/server/database/connect.js';
import { endStoppedSessions } from '../../../src/server/database/stopped-sessions.js';
import { testDatabase } from '../../support/servers/shared-servers.js';
import { until } from '../../support/until.js';

/** Takes a lock, and stops in the next statement once Postgres has parsed it. */
function stopWithin(t: Test, url: string, { name, lock }: { name: string; lock: number }): void {
  const { hostname, port } = new URL(url);
  const socket = () => {
    const opened = connect(Number(port), hostname);
    const write = opened.write.bind(opened);
    let hasStopped = false;
    const writeUntilStopped = (data: Uint8Array | string) => {
      if (hasStopped) return true;
      hasStopped = Buffer.from(data).includes('AS marker');
      return write(data);
    };
    return new Promise((resolve) =>
      opened.once('connect', () => resolve(Object.assign(opened, { write: writeUntilStopped }))),
    );
  };
  // The driver's types lack `socket`.
  const options = { max: 1, onnotice: () => {}, connection: { application_name: name }, socket };
  const sql = postgres(url, options as postgres.Options<Record<string, never>>);
  const stop = async () => {
    const session = await sql.reserve();
    await session`BEGIN`;
    await session`SELECT pg_advisory_xact_lock(${lock})`;
    await session`SELECT ${1}::integer AS marker`;
  };
  const stopped = stop().catch(() => {});
  t.teardown(async () => {
    void sql.end({ timeout: 0 });
    await stopped;
  });
}

t.test(
  'the session of a process that stopped within a statement is ended, and none of another program',
  async (t) => {
    const url = await testDatabase(t);
    const pool = connectPool({ url, name: 'test', max: 2, statementTimeoutMs: 10_000 });
    t.teardown(() => pool.end({ timeout: 1 }));
    const locks = async () => {
      const rows = await pool<{ lock: number }[]>`
      SELECT objid::integer AS lock FROM pg_locks WHERE locktype = 'advisory'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1`;
      return rows.map(({ lock }) => lock).join();
    };
    stopWithin(t, url, { name: 'attest worker', lock: 1 });
    stopWithin(t, url, { name: 'psql', lock: 2 });
    await until('both have their locks', async () => (await locks()) === '1,2');
    t.same(await endStoppedSessions(pool), [], 'they may still go on');
    const ended = await until('one is ended', async () => {
      const names = await endStoppedSessions(pool);
      return names.length > 0 && names;
    });
    t.same(ended, ['attest worker']);
    await until('its lock is free', async () => (await locks()) === '2');
    t.same(await endStoppedSessions(pool), []);
  },
);
