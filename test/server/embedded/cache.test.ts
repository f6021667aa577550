import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { cached, openCacheDir } from '../../../src/server/embedded/cache.js';
import { getPostgresBinaries } from '../../../src/server/embedded/postgres-binaries.js';
import { findPostgresUser } from '../../../src/server/embedded/postgres-user.js';
import { closedHome } from '../../support/servers/embedded-process.js';

t.test('an entry is built once for concurrent callers, and a failed build leaves none', async (t) => {
  const cacheDir = await openCacheDir(join(closedHome(t), 'cache'));
  let builds = 0;
  const build = async (dir: string) => {
    builds++;
    writeFileSync(join(dir, 'file'), 'text');
  };
  const failing = async (dir: string) => {
    await build(dir);
    throw new Error('no luck');
  };
  await t.rejects(cached(cacheDir, 'entry', failing), { message: 'no luck' });
  t.same(readdirSync(cacheDir), ['lock']);
  mkdirSync(join(cacheDir, 'partial/of a killed process'), { recursive: true });
  const paths = await Promise.all([1, 2, 3].map(() => cached(cacheDir, 'entry', build)));
  t.same(new Set(paths), new Set([join(cacheDir, 'entry')]));
  t.equal(builds, 2);
  t.same(readdirSync(cacheDir), ['entry', 'lock']);
  t.same(readdirSync(join(cacheDir, 'entry')), ['file']);
});

t.test('a cache directory that others can write is not used', async (t) => {
  const home = closedHome(t);
  chmodSync(home, 0o777);
  await t.rejects(openCacheDir(join(home, 'cache')), {
    code: 'binaries_unusable',
    message: /may write into/,
  });
  chmodSync(home, 0o1777);
  t.equal(await openCacheDir(join(home, 'cache')), join(home, 'cache'));
  symlinkSync('cache', join(home, 'link'));
  await t.rejects(openCacheDir(join(home, 'link')), { message: /not a directory/ });
  if (process.geteuid?.() !== 0) return;
  const others = closedHome(t, { uid: 65_534, gid: 65_534 });
  await t.rejects(openCacheDir(others), { message: /belongs to user id 65534/ });
  await t.rejects(openCacheDir(join(others, 'cache')), { message: /belongs to user id 65534/ });
});

t.test('programs out of reach or without their links are run from a copy', async (t) => {
  const [closed, open] = [closedHome(t), closedHome(t)];
  chmodSync(open, 0o755);
  const packageDir = makePackage(join(closed, 'package'));
  const options = { user: await findPostgresUser(), packageDir };
  writeFileSync(join(closed, 'file'), '');
  const unusable = { code: 'binaries_unusable', message: /not a directory/ };
  await t.rejects(getPostgresBinaries({ ...options, cacheDir: join(closed, 'file') }), unusable);
  const cacheDir = join(open, 'cache');
  const both = await Promise.all([1, 2].map(() => getPostgresBinaries({ ...options, cacheDir })));
  t.same(both[0], both[1]);
  t.match(both[0], { major: 18, postgres: new RegExp(`^${cacheDir}/postgres-1.2.3`) });
  t.same(readdirSync(cacheDir).length, 2, 'the copy and the lock');
});

/** A package like npm's before its install script: the programs work only with the link beside them. */
function makePackage(dir: string): string {
  const program = '#!/bin/sh\n. "$(dirname "$0")/../lib/lib.so.1" && echo "postgres (PostgreSQL) 18.4"\n';
  for (const part of ['bin', 'lib']) mkdirSync(join(dir, 'native', part), { recursive: true });
  for (const name of ['postgres', 'initdb'])
    writeFileSync(join(dir, 'native/bin', name), program, { mode: 0o700 });
  writeFileSync(join(dir, 'native/lib/lib.so.1.2'), '', { mode: 0o600 });
  const links = [{ source: 'native/lib/lib.so.1.2', target: 'native/lib/lib.so.1' }];
  writeFileSync(join(dir, 'native/pg-symlinks.json'), JSON.stringify(links));
  writeFileSync(join(dir, 'package.json'), '{"version":"1.2.3"}');
  return dir;
}
