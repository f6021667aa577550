import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type NatsConnection } from 'nats';
import t, { type Test } from 'tap';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { startNats } from '../../../src/server/embedded/nats.js';
import type { LocalServer } from '../../../src/server/embedded/postgres.js';
import { findProcessesIn } from '../../../src/server/embedded/process-table.js';
import '../../support/foreign/nats-server.js';
import { binDir, closedHome, startEmbeddedProcess } from '../../support/servers/embedded-process.js';

const log = { debug: () => {}, warn: () => {}, error: () => {} };

const isShellOrFlock = (name: string) => name === 'sh' || name === 'flock';

async function withNats(
  t: Test,
  home: string,
  use: (server: LocalServer) => Promise<unknown>,
): Promise<void> {
  const dataDir = await lockDataDir({ path: home });
  try {
    const server = await startNats({ dataDir, log });
    await use(server).finally(() => server.stop());
    t.same(await findProcessesIn(join(home, 'nats'), 'nats-server'), []);
  } finally {
    await dataDir.release();
  }
}

async function withConnection<T>(url: string, use: (connection: NatsConnection) => Promise<T>): Promise<T> {
  const { host, username: user, password: pass } = new URL(url);
  const connection = await connect({ servers: host, user, pass, reconnect: false });
  return use(connection).finally(() => connection.close());
}

const putMessage = (url: string) =>
  withConnection(url, async (connection) => {
    const manager = await connection.jetstreamManager();
    await manager.streams.add({ name: 'KEPT', subjects: ['kept'] });
    await connection.jetstream().publish('kept', 'text');
  });

const assertMessage = (t: Test, url: string) =>
  withConnection(url, async (connection) => {
    const manager = await connection.jetstreamManager();
    t.equal((await manager.streams.getMessage('KEPT', { last_by_subj: 'kept' })).string(), 'text');
  });

t.test('a stored message is there after a restart, for the holder of the password alone', async (t) => {
  const home = closedHome(t);
  await withNats(t, home, async ({ url, exited, stop }) => {
    await putMessage(url);
    const wrong = new URL(url);
    wrong.password = 'wrong';
    await t.rejects(
      withConnection(wrong.href, async () => {}),
      { code: 'AUTHORIZATION_VIOLATION' },
    );
    await t.rejects(connect({ servers: wrong.host, reconnect: false }), { code: 'AUTHORIZATION_VIOLATION' });
    t.equal(statSync(join(home, 'nats/server.conf')).mode & 0o777, 0o600);
    t.equal(statSync(join(home, 'nats')).mode & 0o777, 0o700);
    await stop();
    t.match(await exited, { expected: true });
  });
  await withNats(t, home, (server) => assertMessage(t, server.url));
});

t.test('a server left by a killed process is stopped, and its messages are there', async (t) => {
  const home = closedHome(t);
  const child = startEmbeddedProcess({ dataDir: home, servers: ['nats'] });
  const answer = await child.running();
  await putMessage(answer.natsUrl);
  await child.kill();
  await withNats(t, home, async (server) => {
    const running = await findProcessesIn(join(home, 'nats'), 'nats-server');
    t.same(
      running.map(({ pid }) => pid),
      [server.pid],
    );
    await assertMessage(t, server.url);
  });
});

t.test('a server that dies is reported', async (t) => {
  await withNats(t, closedHome(t), async (server) => {
    process.kill(server.pid, 'SIGKILL');
    t.match(await server.exited, { expected: false, signal: 'SIGKILL' });
  });
});

t.test('a server that cannot start reports the reason', async (t) => {
  const home = closedHome(t);
  mkdirSync(join(home, 'nats'));
  writeFileSync(join(home, 'nats/jetstream'), '');
  await t.rejects(
    withNats(t, home, async () => {}),
    { code: 'start_failed', message: /nats-server .* does not start: .*jetstream/i },
  );
});

t.test('if it is not available, the error says how to install it', async (t) => {
  const home = closedHome(t);
  const env = { PATH: binDir(t, isShellOrFlock) };
  const child = startEmbeddedProcess({
    dataDir: home,
    cacheDir: join(home, 'cache'),
    servers: ['nats'],
    env,
  });
  const message = /not on PATH.*Install it .*NATS_URL/;
  t.match(await child.answer, { code: 'not_installed', message });
  await child.stop();
});

t.test('a program on PATH is taken unless it is too old', async (t) => {
  const [home, bin] = [closedHome(t), binDir(t, isShellOrFlock)];
  const told = join(home, 'told');
  const fake = (version: string) =>
    writeFileSync(
      join(bin, 'nats-server'),
      `#!/bin/sh\necho nats-server: v${version}\necho "$@" >>${told}\n`,
      { mode: 0o755 },
    );
  const answer = async () => {
    const child = startEmbeddedProcess({
      dataDir: home,
      cacheDir: join(home, 'cache'),
      servers: ['nats'],
      env: { PATH: bin },
    });
    const given = await child.answer;
    await child.stop();
    return given;
  };
  fake('2.8.4');
  t.match(await answer(), { code: 'not_installed' });
  fake('2.12.0');
  t.match(await answer(), { code: 'start_failed' });
  t.match(readFileSync(told, 'utf8'), /--config server.conf/);
});
