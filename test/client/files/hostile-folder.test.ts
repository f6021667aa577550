/** Folders that a set cannot be made of. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { FolderError, type HashFilesOptions, hashFiles } from '../../../src/client/client.js';
import { makeFolder, makePublicFolder, presentOf, takeAll } from './folders.js';

/** The problems of a folder, as `path message`. */
async function problemsOf(dir: string, options: HashFilesOptions = {}): Promise<string[]> {
  const error = await takeAll(hashFiles(dir, options)).then(
    () => undefined,
    (reason) => reason,
  );
  if (!(error instanceof FolderError)) throw error ?? new Error('there is no problem');
  return error.problems.map(({ path, message }) => `${path} ${message}`);
}

t.test('everything that is no file is named, all together, before anything is hashed', async (t) => {
  const dir = makeFolder(t, ['a/file', 'back\\slash'], makePublicFolder(t));
  symlinkSync('file', join(dir, 'a/link'));
  execFileSync('mkfifo', [join(dir, 'pipe')]);
  const server = createServer().listen(join(dir, 'socket'));
  await new Promise((resolve) => server.on('listening', resolve));
  t.teardown(() => server.close());
  writeFileSync(Buffer.concat([Buffer.from(`${dir}/a/`), Buffer.from([0x66, 0xff, 0xe9])]), '');
  writeFileSync(Buffer.concat([Buffer.from(`${dir}/a/`), Buffer.from([0x66, 0xff, 0xea])]), '');
  const onListed = () => t.fail('nothing is hashed');
  t.same((await problemsOf(dir, { onListed })).sort(), [
    'a/f\\xff\\xe9 has a name that is not UTF-8',
    'a/f\\xff\\xea has a name that is not UTF-8',
    'a/link is a symbolic link: follow links, or exclude it',
    'back\\slash has a backslash',
    'pipe is a named pipe, not a file',
    'socket is a socket, not a file',
  ]);
  const filter = (path: string, isFolder: boolean) => isFolder || path === 'a/file';
  t.same(await takeAll(hashFiles(dir, { filter })), [presentOf('a/file')], 'what is left out is no problem');
});

t.test('a name with the replacement character itself is UTF-8', async (t) => {
  const dir = makeFolder(t, ['a\ufffd']);
  t.same(await takeAll(hashFiles(dir)), [presentOf('a\ufffd')]);
});

t.test('of very many problems 50 are listed, and all are counted', async (t) => {
  const dir = makeFolder(t, ['file']);
  for (let i = 0; i < 60; i++) symlinkSync('file', join(dir, `link${i}`));
  await t.rejects(takeAll(hashFiles(dir)), {
    count: 60,
    message: /^60 files cannot .*\n(?:.*\n)* {2}and 10 more$/,
  });
  t.equal((await problemsOf(dir)).length, 50);
});

t.test('links inside the folder are followed if that is asked for', async (t) => {
  const dir = makeFolder(t, ['b/file']);
  symlinkSync('b/file', join(dir, 'link'));
  symlinkSync('b', join(dir, 'a'));
  const { bytes, sha256 } = presentOf('b/file');
  t.same(
    await takeAll(hashFiles(dir, { followSymlinks: true })),
    ['a/file', 'b/file', 'link'].map((path) => ({ path, bytes, sha256 })),
  );
});

t.test('links out of the folder, around, to nothing or to a pipe are not followed', async (t) => {
  const outside = makeFolder(t, ['in/file', 'secret']);
  const dir = join(outside, 'in');
  symlinkSync('../secret', join(dir, 'out'));
  symlinkSync('/', join(dir, 'root'));
  symlinkSync('.', join(dir, 'loop'));
  symlinkSync('itself', join(dir, 'itself'));
  symlinkSync('none', join(dir, 'none-link'));
  mkdirSync(join(dir, 'deep'));
  symlinkSync('../deep', join(dir, 'deep/up'));
  execFileSync('mkfifo', [join(outside, 'pipe')]);
  symlinkSync('../pipe', join(dir, 'pipe'));
  // A folder beside it whose path begins alike.
  mkdirSync(`${dir}-2`);
  symlinkSync('../in-2', join(dir, 'beside'));
  t.same((await problemsOf(dir, { followSymlinks: true })).sort(), [
    'beside is a symbolic link out of the folder',
    'deep/up is a symbolic link to a folder that it is in',
    'itself is a symbolic link that cannot be followed (ELOOP)',
    'loop is a symbolic link to a folder that it is in',
    'none-link is a symbolic link that cannot be followed (ENOENT)',
    'out is a symbolic link out of the folder',
    'pipe is a symbolic link out of the folder',
    'root is a symbolic link out of the folder',
  ]);
});

t.test('a file that grows or shrinks while it is read is an error', async (t) => {
  const size = 512 * 1024 * 1024;
  for (const change of [
    (file: string) => appendFileSync(file, 'more'),
    (file: string) => truncateSync(file, size / 2),
  ]) {
    const dir = makeFolder(t, ['b']);
    const file = join(dir, 'a');
    writeFileSync(file, '');
    truncateSync(file, size);
    let isChanged = false;
    const onBytes = () => {
      if (!isChanged) change(file);
      isChanged = true;
    };
    t.same(await problemsOf(dir, { onBytes }), ['a changed while it was read']);
  }
});

t.test(
  'files that are replaced after they were listed are errors, all of them, after those before',
  async (t) => {
    const dir = makeFolder(t, ['a', 'gone', 'folder', 'link', 'z']);
    const onListed = () => {
      for (const name of ['gone', 'folder', 'link']) rmSync(join(dir, name));
      mkdirSync(join(dir, 'folder'));
      symlinkSync('a', join(dir, 'link'));
    };
    const seen: string[] = [];
    const hashing = async () => {
      for await (const { path } of hashFiles(dir, { onListed })) seen.push(path);
    };
    await t.rejects(hashing(), {
      name: 'FolderError',
      message: /\n {2}folder is no file any more\n {2}gone vanished\n {2}link is no file any more$/,
    });
    t.same(seen, ['a']);
  },
);

t.test('unreadable files and folders are named', async (t) => {
  const dir = makeFolder(t, ['a', 'b'], makePublicFolder(t));
  const isRoot = process.geteuid?.() === 0;
  mkdirSync(join(dir, 'c'));
  chmodSync(join(dir, 'a'), 0);
  chmodSync(join(dir, 'b'), 0);
  // Root reads all: another user does not.
  if (isRoot) process.seteuid?.(65_534);
  try {
    t.same(await problemsOf(dir), ['a cannot be read (EACCES)', 'b cannot be read (EACCES)']);
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
  chmodSync(join(dir, 'c'), 0);
  if (isRoot) process.seteuid?.(65_534);
  try {
    t.same(await problemsOf(dir), ['c is a folder that cannot be read (EACCES)']);
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
});
