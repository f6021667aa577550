/** PgBouncer before a database, on a port of its own. */
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { EmbeddedError } from '../../../src/server/embedded/embedded-error.js';
import { findPostgresUser } from '../../../src/server/embedded/postgres-user.js';
import { startServerProcess } from '../../../src/server/embedded/server-process.js';
import { PGBOUNCER } from '../foreign/pgbouncer.js';
import { findFreePort } from '../servers/free-port.js';

/** What a pooler is configured with. `ignored`: startup parameters that it drops instead of refusing the client. */
export type PoolerConfig = { mode: 'session' | 'transaction' | 'statement'; ignored: readonly string[] };

/** Starts it until the test ends. @returns the URL of the database behind it */
export async function startPgBouncer(
  t: Test,
  databaseUrl: string,
  { mode, ignored }: PoolerConfig,
): Promise<string> {
  const port = await findFreePort();
  const user = await findPostgresUser();
  const server = new URL(databaseUrl);
  const dir = await mkdtemp(join(tmpdir(), 'pgbouncer-'));
  t.teardown(() => rm(dir, { recursive: true }));
  await chmod(dir, 0o755);
  const file = join(dir, 'pgbouncer.ini');
  const database = server.pathname.slice(1);
  const behind = {
    host: server.hostname,
    port: server.port,
    dbname: database,
    user: decodeURIComponent(server.username),
    password: decodeURIComponent(server.password),
  };
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: mode,
    default_pool_size: 50,
    ignore_startup_parameters: ignored.join(', '),
  };
  const words = Object.entries(behind).map(([name, value]) => `${name}='${value}'`);
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  await writeFile(file, `[databases]\n${database} = ${words.join(' ')}\n[pgbouncer]\n${lines.join('\n')}\n`);
  const pooler = await startServerProcess(
    { log: { debug: () => {}, warn: () => {}, error: () => {} } },
    {
      name: 'pgbouncer',
      file: PGBOUNCER,
      args: [file],
      cwd: dir,
      user,
      stopSteps: [{ signal: 'SIGTERM', waitMs: 60_000 }],
      levelOf: () => 'debug',
      isReady: (line) => line.includes('process up'),
      explainFailure: (last) => new EmbeddedError('start_failed', last.join('\n')),
    },
  );
  t.teardown(() => pooler.stop());
  await assertListening(port);
  server.port = String(port);
  return server.href;
}

async function assertListening(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.destroy();
}
