/** Settings that an operator made for the server, the database or the user: none of them changes what the service does. */
import t, { type Test } from 'tap';
import type { Pool } from '../../../src/server/database/connect.js';
import { EmbeddedError } from '../../../src/server/embedded/embedded-error.js';
import { getPostgresBinaries } from '../../../src/server/embedded/postgres-binaries.js';
import { dataDirArgument } from '../../../src/server/embedded/postgres-cluster.js';
import { findPostgresUser } from '../../../src/server/embedded/postgres-user.js';
import { startServerProcess } from '../../../src/server/embedded/server-process.js';
import { startStartupStripper } from '../../support/breaking/startup-stripper.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { runProcess } from '../../support/calling/run-cli.js';
import { setScene } from '../../support/fault-fixture.js';
import { assertConsistent } from '../../support/judging/consistent.js';
import { findFreePort } from '../../support/servers/free-port.js';
import { type Installation, makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import { until } from '../../support/until.js';
import { untilWitnessed } from '../../support/wait-for-idle.js';

/** Each broke something: values that were misread, timeouts that cut off what was at work, or arrays that came out otherwise. */
const SETTINGS = {
  bytea_output: 'escape',
  DateStyle: 'German, DMY',
  IntervalStyle: 'iso_8601',
  TimeZone: 'Asia/Kathmandu',
  extra_float_digits: '-15',
  array_nulls: 'off',
  transform_null_equals: 'on',
  standard_conforming_strings: 'off',
  idle_session_timeout: '50ms',
  idle_in_transaction_session_timeout: '1ms',
  statement_timeout: '1ms',
  lock_timeout: '1ms',
  exit_on_error: 'on',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
};

type Scene = { installation: Installation; pool: Pool; apiKey: string; databaseUrl: string };

async function open(t: Test): Promise<Scene> {
  const installation = await makeInstallation(t);
  const pool = installation.openPool();
  return { installation, pool, databaseUrl: installation.databaseUrl, apiKey: await makeUnlimitedKey(pool) };
}

async function set({ pool, databaseUrl }: Scene, name: string, value: string): Promise<void> {
  const database = new URL(databaseUrl).pathname.slice(1);
  await pool.unsafe(`ALTER DATABASE "${database}" SET ${name} = '${value}'`);
}

const refusal = (role: string, env: Record<string, string>) =>
  runProcess([role, ...(role === 'migrate' ? [] : ['--ops-port', '0'])], { ...env, PORT: '0' });

t.test('sessions have the required settings over any defaults of the database', async (t) => {
  const scene = await open(t);
  const { installation, pool, apiKey } = scene;
  for (const [name, value] of Object.entries(SETTINGS)) await set(scene, name, value);
  const api = await installation.startApi();
  const worker = await installation.startWorker();
  const acknowledged = [];
  for (let i = 0; i < 5; i++) {
    const creation = newCreation(i % 2 === 0);
    const answer = await send(api.baseUrl, apiKey, creation);
    t.equal(answer.status, 201);
    acknowledged.push(acknowledgement(creation, answer));
    await until('a session was idle', async () => {
      const idle = await pool`
        SELECT FROM pg_stat_activity
        WHERE application_name = 'attest accept' AND datname = current_database() AND state = 'idle'
          AND state_change < now() - interval '60 ms'`;
      return idle.length > 0;
    });
  }
  await untilWitnessed(pool);
  const headers = { authorization: `Bearer ${apiKey}` };
  const shown = await fetch(`${api.baseUrl}/v1/attestations/${acknowledged[0]?.id}`, { headers });
  t.match(await shown.json(), {
    id: acknowledged[0]?.id,
    status: 'witnessed',
    leaf_sha256: acknowledged[0]?.leafSha256,
  });
  await assertConsistent(t, { pool, acknowledged, register: installation.register });
  t.same(
    [...api.lines, ...worker.lines].filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
  );
});

t.test('sessions that do not take their settings are rejected at start, which names them', async (t) => {
  const { installation, databaseUrl } = await open(t);
  const stripped = await startStartupStripper(t, databaseUrl);
  const cases = {
    [stripped]:
      /^error: the database's sessions do not have the settings they were opened with: .*statement_timeout is 0 and not \d+.*PgBouncer/,
    [`${databaseUrl}?statement_timeout=5000&DateStyle=SQL`]:
      /DateStyle is SQL, MDY and not ISO, MDY, statement_timeout is 5000 and not/,
  };
  for (const [DATABASE_URL, stderr] of Object.entries(cases)) {
    for (const role of ['api', 'worker', 'migrate']) {
      const ended = await refusal(role, { ...installation.env, DATABASE_URL });
      t.match(ended, { code: 1, stdout: '', stderr }, role);
    }
  }
});

t.test('a server that confirms before it has stored is rejected, at start and later', async (t) => {
  const scene = await open(t);
  const { installation, pool, apiKey } = scene;
  const api = await installation.startApi();
  const create = async () => (await send(api.baseUrl, apiKey, newCreation())).status;
  t.equal(await create(), 201);
  const newSessions = () =>
    pool`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'attest accept' AND datname = current_database()`;
  await set(scene, 'synchronous_commit', 'off');
  const stderr = /^error: synchronous_commit is off for this database: .*; set it to on\n$/;
  for (const role of ['api', 'worker'])
    t.match(await refusal(role, installation.env), { code: 1, stderr }, role);
  await newSessions();
  await until('creations are refused', async () => (await create()) === 503);
  const ready = await fetch(`${api.opsUrl}/readyz`);
  t.match([ready.status, await ready.text()], [503, /synchronous_commit is off/]);
  await until('the log says so', () =>
    api.lines.some(({ level, reason }) => level === 'error' && /synchronous_commit/.test(String(reason))),
  );
  await set(scene, 'synchronous_commit', 'local');
  await newSessions();
  await until('creations are taken', async () => (await create()) === 201);
});

/** Starts a server over the directory of one that has stopped, with `fsync` off, until the test ends. */
async function startWithoutFsync(t: Test, dir: string): Promise<{ host: string; port: number }> {
  const user = await findPostgresUser();
  const binaries = await getPostgresBinaries({ user });
  const address = { host: '127.0.0.1', port: await findFreePort() };
  const settings = { fsync: 'off', port: address.port, unix_socket_directories: '' };
  const server = await startServerProcess(
    { log: { debug: () => {}, warn: () => {}, error: () => {} } },
    {
      name: 'postgres',
      file: binaries.postgres,
      args: [
        ...['-D', dataDirArgument({ user, dir })],
        ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      cwd: dir,
      user,
      stopSteps: [{ signal: 'SIGINT', waitMs: 60_000 }],
      levelOf: () => 'debug',
      isReady: (line) => line.includes('ready to accept connections'),
      explainFailure: (lines) => new EmbeddedError('start_failed', lines.join('\n')),
    },
  );
  t.teardown(() => server.stop());
  return address;
}

t.test('a server that does not wait for its disk is rejected as well', async (t) => {
  const { installation, servers, apiKey } = await setScene(t);
  const api = await installation.startApi();
  const { postgres } = servers;
  await postgres.stop();
  postgres.proxy.point(await startWithoutFsync(t, postgres.dir));
  await until('the process that runs says so', async () => {
    const ready = await fetch(`${api.opsUrl}/readyz`);
    return ready.status === 503 && (await ready.text()).includes('fsync is off');
  });
  t.equal((await send(api.baseUrl, apiKey, newCreation())).status, 503);
  const stderr = /^error: fsync is off for this database: .*; set it to on\n$/;
  for (const role of ['api', 'worker'])
    t.match(await refusal(role, installation.env), { code: 1, stderr }, role);
});
