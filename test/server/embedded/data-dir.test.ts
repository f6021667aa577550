import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { findFileLock } from '../../../src/server/core/files/file-lock.js';
import { writeFileAtomic } from '../../../src/server/core/files/write-file-atomic.js';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { closedHome, startEmbeddedProcess } from '../../support/servers/embedded-process.js';

t.test('a data directory is made closed to others, with its parents', async (t) => {
  const home = closedHome(t);
  const dataDir = await lockDataDir({ path: join(home, 'a/b') });
  for (const path of ['a', 'a/b']) t.equal(statSync(join(home, path)).mode & 0o777, 0o700);
  await dataDir.release();
});

t.test('a second instance is rejected with the holder of the directory', async (t) => {
  const path = closedHome(t);
  const now = () => new Date('2026-01-02T03:04:05.678Z');
  const first = await lockDataDir({ path, now });
  const message = `The data directory ${first.path} is already in use by process ${process.pid} (started 2026-01-02T03:04:05.678Z).`;
  await t.rejects(lockDataDir({ path }), { code: 'data_dir_in_use', message });
  await first.release();
  await (await lockDataDir({ path })).release();
});

t.test('a damaged lock file neither keeps anybody out nor lets a second one in', async (t) => {
  const path = closedHome(t);
  writeFileSync(join(path, 'lock'), '{"pid":1,"started_at":"\u001b[31m');
  const first = await lockDataDir({ path });
  writeFileSync(join(path, 'lock'), '{"pid":1,"started_at":"\u001b[31m');
  await t.rejects(lockDataDir({ path }), { message: /already in use by another process/ });
  await first.release();
});

t.test('of many that start at once one gets the directory', async (t) => {
  const path = closedHome(t);
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => lockDataDir({ path })));
  const held = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  t.equal(held.length, 1);
  await held[0]!.release();
});

t.test('a directory reached by two names is one directory', async (t) => {
  const home = closedHome(t);
  mkdirSync(join(home, 'real'), { mode: 0o700 });
  symlinkSync('real', join(home, 'link'));
  const first = await lockDataDir({ path: join(home, 'link') });
  t.equal(first.path, realpathSync(join(home, 'real')));
  await t.rejects(lockDataDir({ path: join(home, 'real') }), { code: 'data_dir_in_use' });
  await first.release();
});

t.test('a holder killed with SIGKILL frees the directory', async (t) => {
  const path = closedHome(t);
  const holder = startEmbeddedProcess({ dataDir: path, servers: [] });
  await holder.answer;
  await t.rejects(lockDataDir({ path }), { message: new RegExp(`in use by process ${holder.pid} `) });
  await holder.kill();
  await (await lockDataDir({ path })).release();
});

t.test('a program started by the holder does not inherit the lock', async (t) => {
  const path = closedHome(t);
  const dataDir = await lockDataDir({ path });
  const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  await once(child, 'spawn');
  await dataDir.release();
  await (await lockDataDir({ path })).release();
  child.stdin.end();
  await once(child, 'close');
});

t.test('an empty directory that others may write into is closed, one with files is rejected', async (t) => {
  const path = closedHome(t);
  chmodSync(path, 0o777);
  await (await lockDataDir({ path })).release();
  t.equal(statSync(path).mode & 0o777, 0o700);
  chmodSync(path, 0o770);
  await t.rejects(lockDataDir({ path }), { code: 'data_dir_unusable', message: /run "chmod go-w/ });
});

t.test('a path that cannot be a directory is rejected', async (t) => {
  const home = closedHome(t);
  writeFileSync(join(home, 'file'), '');
  await t.rejects(lockDataDir({ path: join(home, 'file') }), {
    code: 'data_dir_unusable',
    message: /EEXIST/,
  });
  await t.rejects(lockDataDir({ path: join(home, 'file/below') }), { code: 'data_dir_unusable' });
});

t.test("another user's directory is rejected", async (t) => {
  let path = '/';
  if (process.geteuid?.() === 0) {
    path = closedHome(t);
    chownSync(path, 65_534, 65_534);
  }
  await t.rejects(lockDataDir({ path }), { code: 'data_dir_unusable', message: /belongs to user id/ });
});

t.test('a waiting lock is acquired when the holder releases it', async (t) => {
  const path = join(closedHome(t), 'lock');
  const first = await findFileLock(path);
  t.equal(await findFileLock(path), undefined);
  const waiting = findFileLock(path, { wait: true });
  await first!.release();
  await (await waiting)!.release();
});

t.test('a file is written whole with its mode, and a failed write leaves nothing', async (t) => {
  const home = closedHome(t);
  const path = join(home, 'file');
  await writeFileAtomic(path, 'one');
  t.equal(statSync(path).mode & 0o777, 0o600);
  await writeFileAtomic(path, Buffer.from('two'), { mode: 0o644 });
  t.equal(readFileSync(path, 'utf8'), 'two');
  t.equal(statSync(path).mode & 0o777, 0o644);
  mkdirSync(join(home, 'dir/full'), { recursive: true });
  await t.rejects(writeFileAtomic(join(home, 'dir'), 'x'));
  t.same(readdirSync(home).sort(), ['dir', 'file']);
});
