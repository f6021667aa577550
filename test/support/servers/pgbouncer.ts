/** Debian's PgBouncer before a database, on a port of its own. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { openCacheDir } from '../../../src/server/embedded/cache.js';
import { fetchDebianPackage } from '../../../src/server/embedded/debian-package.js';
import { EmbeddedError } from '../../../src/server/embedded/embedded-error.js';
import { findPostgresUser } from '../../../src/server/embedded/postgres-user.js';
import { startServerProcess } from '../../../src/server/embedded/server-process.js';
import { findFreePort } from './free-port.js';

const execute = promisify(execFile);

/** What a pooler is configured with. `ignored`: startup parameters that it drops instead of refusing the client. */
export type PoolerConfig = { mode: 'session' | 'transaction' | 'statement'; ignored: readonly string[] };

/** Starts it until the test ends. @returns the URL of the database behind it */
export async function startPgBouncer(
  t: Test,
  databaseUrl: string,
  { mode, ignored }: PoolerConfig,
): Promise<string> {
  const { program, libraries } = await openProgram();
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
      file: '/usr/bin/env',
      args: [`LD_LIBRARY_PATH=${libraries}`, program, file],
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

/** The program of PATH, or that of Debian's package, with the libraries that a plain system lacks. */
async function openProgram(): Promise<{ program: string; libraries: string }> {
  const { stdout } = await execute('sh', ['-c', 'command -v pgbouncer || true']);
  if (stdout !== '') return { program: stdout.trim(), libraries: '' };
  const cacheDir = await openCacheDir();
  const program = join(await fetchDebianPackage('pgbouncer', cacheDir), 'usr/sbin/pgbouncer');
  const trees: string[] = [];
  const { stdout: linked } = await execute('ldd', [program]);
  for (const [library, name] of Object.entries(LIBRARIES)) {
    if (new RegExp(`${library}.* not found`).test(linked))
      trees.push(await fetchDebianPackage(name, cacheDir));
  }
  const { stdout: libraries } = await execute('find', [...trees, '-name', '*.so.*', '-printf', '%h\n']);
  return {
    program,
    libraries: trees.length === 0 ? '' : [...new Set(libraries.trim().split('\n'))].join(':'),
  };
}

/** Debian's packages of its libraries. */
const LIBRARIES = {
  libcares: 'libc-ares2',
  libevent: 'libevent-2.1-7',
  libssl: 'libssl3',
};
