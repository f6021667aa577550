import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import postgres from 'postgres';
import t, { type Test } from 'tap';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { type LocalServer, startPostgres } from '../../../src/server/embedded/postgres.js';
import { findProcessesIn } from '../../../src/server/embedded/process-table.js';
import {
  closedHome,
  findOrdinaryUser,
  startEmbeddedProcess,
} from '../../support/servers/embedded-process.js';

const log = { debug: () => {}, warn: () => {}, error: () => {} };

/** Starts Postgres for the length of `use`, then checks that nothing is left running. */
async function withPostgres(
  t: Test,
  home: string,
  use: (server: LocalServer) => Promise<unknown>,
  port = 0,
): Promise<void> {
  const dataDir = await lockDataDir({ path: home });
  try {
    const server = await startPostgres({ dataDir, log, port });
    await use(server).finally(() => server.stop());
    t.same(await findProcessesIn(join(home, 'postgres'), 'postgres'), []);
  } finally {
    await dataDir.release();
  }
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  return sql.unsafe(text).finally(() => sql.end());
}

const putNote = (url: string) => query(url, `CREATE TABLE IF NOT EXISTS note AS SELECT 'kept' AS text`);
const assertNote = async (t: Test, url: string) =>
  t.same(await query(url, 'SELECT text FROM note'), [{ text: 'kept' }]);

/** Runs the servers in a process that is then killed, with a note in the database. */
async function leaveRunning(dataDir: string): Promise<number> {
  const child = startEmbeddedProcess({ dataDir, servers: ['postgres'] });
  const answer = await child.running();
  await putNote(answer.databaseUrl);
  await child.kill();
  return answer.pids[0]!;
}

/** Cluster with a note, made by the first test; below a closed home, so that every test is about one. */
const home = closedHome(t);

t.test('below a closed home the data is made, kept over a restart, and durable', async (t) => {
  await withPostgres(t, home, (server) => putNote(server.url));
  await withPostgres(t, home, async (server) => {
    await assertNote(t, server.url);
    const settings = `SELECT name, setting FROM pg_settings WHERE name IN
      ('data_checksums', 'fsync', 'full_page_writes', 'listen_addresses', 'synchronous_commit', 'unix_socket_directories')
      ORDER BY name`;
    const values = (await query(server.url, settings)).map(({ setting }) => setting);
    t.same(values, ['on', 'on', 'on', '127.0.0.1', 'on', '']);
    const [locale] = await query(
      server.url,
      `SELECT lower('ÀÉ') AS lower, current_setting('server_encoding') AS encoding`,
    );
    t.same(locale, { lower: 'àé', encoding: 'UTF8' });
  });
});

t.test('only the password opens the database, to a role that is no superuser', async (t) => {
  await withPostgres(t, home, async ({ url }) => {
    const [row] = await query(url, 'SELECT rolsuper FROM pg_roles WHERE rolname = current_user');
    t.same(row, { rolsuper: false });
    for (const [user, password] of [
      ['attest', 'wrong'],
      ['postgres', 'wrong'],
      ['attest', ''],
    ]) {
      const other = new URL(url);
      Object.assign(other, { username: user, password });
      await t.rejects(
        query(other.href, 'SELECT 1'),
        /password authentication failed|no pg_hba.conf entry|No password/i,
      );
    }
  });
  t.equal(statSync(join(home, 'postgres.password')).mode & 0o777, 0o600);
  t.equal(statSync(join(home, 'postgres')).mode & 0o777, 0o700);
});

t.test('the server inherits no environment and survives Ctrl-C in the terminal', async (t) => {
  process.env.ATTEST_TEST_SECRET = 'secret';
  await withPostgres(t, home, async ({ pid }) => {
    t.notMatch(readFileSync(`/proc/${pid}/environ`, 'utf8'), 'ATTEST_TEST_SECRET');
    const processGroup = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[2];
    t.equal(processGroup, String(pid));
  });
});

t.test('an ordinary user starts it, a second start is rejected, and the data survives', async (t) => {
  const user = findOrdinaryUser();
  const home = closedHome(t, user);
  const options = {
    dataDir: join(home, 'data'),
    servers: ['postgres' as const],
    user,
  };
  const first = startEmbeddedProcess({ ...options, env: { HOME: home } });
  const { databaseUrl } = await first.running();
  await putNote(databaseUrl);
  const refused = await startEmbeddedProcess(options).answer;
  t.match(refused, { code: 'data_dir_in_use', message: new RegExp(`in use by process ${first.pid} `) });
  await first.stop();
  const second = startEmbeddedProcess(options);
  await assertNote(t, (await second.running()).databaseUrl);
  await second.stop();
  t.same(await findProcessesIn(join(home, 'data/postgres'), 'postgres'), []);
});

t.test('a server left by a killed process is stopped, with any content of its pid file', async (t) => {
  for (const damage of [undefined, '', 'rubbish\n\u0000', '1\n/elsewhere\n']) {
    const left = await leaveRunning(home);
    if (damage !== undefined) writeFileSync(join(home, 'postgres/postmaster.pid'), damage);
    await withPostgres(t, home, async (server) => {
      const running = await findProcessesIn(join(home, 'postgres'), 'postgres');
      t.ok(running.every(({ pid, parentPid }) => pid !== left && parentPid !== left));
      t.ok(running.some(({ pid }) => pid === server.pid));
      await assertNote(t, server.url);
    });
  }
});

t.test('a pid file that names another living process does not keep it from starting', async (t) => {
  for (const content of [`${process.pid}\n${home}/postgres\n0\n1\n\n\n\n`, '', 'rubbish']) {
    writeFileSync(join(home, 'postgres/postmaster.pid'), content);
    await withPostgres(t, home, (server) => assertNote(t, server.url));
  }
});

t.test('a first start that is killed half-way leaves nothing in the way of the next', async (t) => {
  const home = closedHome(t);
  const watcher = watch(home);
  const begun = new Promise<void>((resolve) => {
    watcher.on('change', (_event, name) => name === 'postgres.unfinished' && resolve());
  });
  const child = startEmbeddedProcess({ dataDir: home, servers: ['postgres'] });
  await Promise.race([begun, child.running()]);
  watcher.close();
  await child.kill();
  t.notOk(existsSync(join(home, 'postgres')));
  await withPostgres(t, home, (server) => putNote(server.url));
  t.notOk(existsSync(join(home, 'postgres.unfinished')));
  t.same(await findProcessesIn(join(home, 'postgres.unfinished'), 'initdb'), []);
});

t.test('a cluster that lost its password file gets a new password and keeps its data', async (t) => {
  for (const lose of [
    () => rmSync(join(home, 'postgres.password')),
    () => writeFileSync(join(home, 'postgres.password'), ''),
  ]) {
    lose();
    await withPostgres(t, home, (server) => assertNote(t, server.url));
  }
});

t.test('a cluster copied with another owner and mode starts', async (t) => {
  const copy = closedHome(t);
  cpSync(home, copy, { recursive: true });
  chmodSync(join(copy, 'postgres'), 0o755);
  chownSync(join(copy, 'postgres'), process.geteuid!(), process.getegid!());
  await withPostgres(t, copy, (server) => assertNote(t, server.url));
  await withPostgres(t, home, (server) => assertNote(t, server.url));
});

t.test('a port that is taken is named, a free one is chosen', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const taken = { code: 'port_taken', message: /could not bind.*The port is taken/ };
  await t.rejects(
    withPostgres(t, home, async () => {}, port),
    taken,
  );
  holder.close();
  await once(holder, 'close');
  await withPostgres(t, home, async ({ url }) => t.equal(new URL(url).port, String(port)), port);
  await withPostgres(t, home, async ({ url }) => t.ok(Number(new URL(url).port) > 0));
});

t.test('data of another major version and files that are no cluster are left alone', async (t) => {
  const home = closedHome(t);
  mkdirSync(join(home, 'postgres'));
  writeFileSync(join(home, 'postgres/PG_VERSION'), '17\n');
  const older = {
    code: 'version_mismatch',
    message: /holds data of PostgreSQL 17, and this version runs PostgreSQL 18.*pg_upgrade/,
  };
  await t.rejects(
    withPostgres(t, home, async () => {}),
    older,
  );
  rmSync(join(home, 'postgres/PG_VERSION'));
  writeFileSync(join(home, 'postgres/precious'), '');
  await t.rejects(
    withPostgres(t, home, async () => {}),
    { code: 'data_dir_unusable', message: /no PG_VERSION/ },
  );
  t.same(readdirSync(join(home, 'postgres')), ['precious']);
});

t.test('a server that dies is reported, and the next start recovers', async (t) => {
  await withPostgres(t, home, async (server) => {
    process.kill(server.pid, 'SIGKILL');
    t.match(await server.exited, { expected: false, signal: 'SIGKILL' });
  });
  await withPostgres(t, home, async (server) => {
    await assertNote(t, server.url);
    await server.stop();
    await server.stop();
    t.match(await server.exited, { expected: true, code: 0 });
  });
});
