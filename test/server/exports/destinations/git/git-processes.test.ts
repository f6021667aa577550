import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { findFileLock } from '../../../../../src/server/core/files/file-lock.js';
import { openGit } from '../../../../../src/server/exports/destinations/git/git.js';
import { makeObject, openGitUntil, write } from '../../../../support/exports/git/destination.js';
import { startHttpsScene } from '../../../../support/exports/git/https-scene.js';
import { GOOD_TOKEN } from '../../../../support/exports/git/https-server.js';
import { findProcessesIn } from '../../../../support/exports/git/processes.js';
import { until } from '../../../../support/until.js';

const { server, setUp } = await startHttpsScene(t);
const OBJECT = makeObject('p/1.jsonl', 'line\n');
const CHILD = fileURLToPath(new URL('../../../../support/exports/git/writing-child.js', import.meta.url));
t.afterEach(() => server.intercept(undefined));

/** Lets the server never answer a push. Resolves when one has begun. */
function holdPush(): Promise<void> {
  return new Promise((resolve) => {
    server.intercept(({ method, url = '' }) => {
      const isPush = method === 'POST' && url.endsWith('/git-receive-pack');
      if (isPush) resolve();
      return isPush;
    });
  });
}

t.test('an abort in the middle of a push ends all processes, and the next write succeeds', async (t) => {
  const { repository, context, open } = await setUp(t);
  const destination = await open();
  const controller = new AbortController();
  const held = holdPush();
  const written = write(destination, OBJECT, { signal: controller.signal });
  const ended = t.rejects(written, { name: 'DestinationError', message: 'the push was aborted' });
  await held;
  t.not((await findProcessesIn(context.temporaryDirectory)).length, 0);
  controller.abort();
  await ended;
  t.strictSame(await findProcessesIn(context.temporaryDirectory), []);
  t.strictSame(await repository.subjects('main'), []);
  server.intercept(undefined);
  t.strictSame(await write(destination, OBJECT), { outcome: 'written' });
});

t.test('a write that is aborted before its start sends no request', async (t) => {
  const { open } = await setUp(t);
  const destination = await open();
  const before = server.requests.length;
  const written = write(destination, OBJECT, { signal: AbortSignal.abort() });
  await t.rejects(written, { name: 'DestinationError', message: /aborted/ });
  t.equal(server.requests.length, before);
});

t.test('closing kills running programs and deletes all files', async (t) => {
  const { context } = await setUp(t);
  const destination = await openGit(context, { caFile: server.caFile, path: process.env.PATH });
  const held = holdPush();
  const ended = t.rejects(write(destination, OBJECT), { message: 'the push was aborted' });
  await held;
  await destination.close();
  await ended;
  t.strictSame(await findProcessesIn(context.temporaryDirectory), []);
  t.strictSame(await readdir(context.temporaryDirectory), []);
});

t.test('the token is in no argument of a process and in no file', async (t) => {
  const { context, open } = await setUp(t);
  const destination = await open();
  const controller = new AbortController();
  const held = holdPush();
  const ended = t.rejects(write(destination, OBJECT, { signal: controller.signal }));
  await held;
  const processes = await findProcessesIn(context.temporaryDirectory);
  t.ok(processes.some((process) => process.arguments.includes('push')));
  const secrets = [GOOD_TOKEN, Buffer.from(`x-access-token:${GOOD_TOKEN}`).toString('base64')];
  for (const secret of secrets) {
    t.notOk(processes.some((process) => process.arguments.includes(secret)));
    const entries = await readdir(context.temporaryDirectory, { recursive: true, withFileTypes: true });
    t.not(entries.length, 0);
    for (const entry of entries.filter((each) => each.isFile()))
      t.notOk((await readFile(join(entry.parentPath, entry.name))).includes(secret), entry.name);
  }
  controller.abort();
  await ended;
});

t.test('nothing of the environment of this process reaches git', async (t) => {
  const { context, open } = await setUp(t);
  const destination = await open();
  const held = holdPush();
  const controller = new AbortController();
  const ended = t.rejects(write(destination, OBJECT, { signal: controller.signal }));
  await held;
  for (const { pid } of await findProcessesIn(context.temporaryDirectory)) {
    const variables = (await readFile(`/proc/${pid}/environ`, 'utf8')).split('\0').filter(Boolean);
    const names = variables.map((each) => each.slice(0, each.indexOf('=')));
    const own = /^(?:GIT_.*|PATH|LD_LIBRARY_PATH|HOME|XDG_CONFIG_HOME|TMPDIR|LC_ALL|TZ|PWD|_|SSH_ASKPASS.*)$/;
    t.strictSame(
      names.filter((name) => !own.test(name)),
      [],
    );
  }
  controller.abort();
  await ended;
});

t.test('leftovers of a killed process are deleted when the next destination is opened', async (t) => {
  const { repository, context } = await setUp(t);
  const held = holdPush();
  const child = spawn(process.execPath, [CHILD], { stdio: ['pipe', 'inherit', 'inherit'] });
  child.stdin.end(JSON.stringify({ context, caFile: server.caFile }));
  await held;
  const [left] = await readdir(context.temporaryDirectory);
  const beside = await openGitUntil(t, context, { caFile: server.caFile });
  t.ok((await readdir(context.temporaryDirectory)).includes(left!), 'it stays while its process lives');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const orphans = await findProcessesIn(join(context.temporaryDirectory, left!));
  server.intercept(undefined);
  for (const { pid } of orphans) process.kill(pid, 'SIGKILL');
  await until('its processes have ended', async () => {
    return (await findProcessesIn(join(context.temporaryDirectory, left!))).length === 0;
  });
  const next = await openGitUntil(t, context, { caFile: server.caFile });
  t.notOk((await readdir(context.temporaryDirectory)).includes(left!));
  t.strictSame(await write(beside, OBJECT), { outcome: 'written' });
  t.strictSame(await write(next, OBJECT), { outcome: 'written' });
  t.equal((await repository.subjects('main')).length, 1);
});

t.test('only directories that no process has locked are deleted, and of others nothing', async (t) => {
  const { context } = await setUp(t);
  const { temporaryDirectory } = context;
  // Of a process that is alive in another container, where its number is 1 or any other.
  const [locked, unlocked, fresh] = ['1-1-abcdef', '4194305-1-aaaaaa', '4194305-1-bbbbbb'].map(
    (name) => `attest-git-${name}`,
  ) as [string, string, string];
  const keep = ['something-else', 'attest-git-x', `attest-git-${process.pid}-1-abcdef-more`, locked, fresh];
  // A number of a process that is alive, used by another one before.
  const leave = [`attest-git-${process.pid}-1-abcdef`, 'attest-git-4194305-1-abcdef'];
  for (const name of [...keep, ...leave, unlocked]) await mkdir(join(temporaryDirectory, name));
  // By an earlier release.
  for (const name of leave) await utimes(join(temporaryDirectory, name), 0, 0);
  const lock = await findFileLock(join(temporaryDirectory, locked, '.lock'));
  t.teardown(async () => lock?.release());
  await writeFile(join(temporaryDirectory, unlocked, '.lock'), '');
  await openGitUntil(t, context, { caFile: server.caFile });
  const names = await readdir(temporaryDirectory);
  t.strictSame(names.filter((name) => !/^attest-git-\d+-\d{2,}-/.test(name)).sort(), keep.sort());
});
