/** The register in a folder: of all who compared with one entry, one replaces it, whoever was held up and however long. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { syncDirectory } from '../../../../src/server/core/files/write-file-atomic.js';
import { openFileRegister } from '../../../../src/server/log/register/file-register.js';
import type { RegisterEntry } from '../../../../src/server/log/register/register.js';
import { entryPlace, readEntry } from '../../../support/breaking/register.js';

const ORIGIN = 'live.log.example.com';
const entry = (size: number, root = size): RegisterEntry => ({
  origin: ORIGIN,
  size,
  rootHash: Buffer.alloc(32, root),
  keyHash: Buffer.alloc(32, 7),
});
const hex = (byte: number) => Buffer.alloc(32, byte).toString('hex');

t.test('an entry replaces exactly the one it was compared with', async (t) => {
  const folder = t.testdir();
  const register = openFileRegister(folder);
  t.equal(await register.read(ORIGIN), undefined);
  t.equal(await register.replace(entry(1), entry(2)), false, 'there is none');
  t.equal(await register.replace(undefined, entry(2)), true);
  t.same(await register.read(ORIGIN), entry(2));
  t.equal(await register.replace(undefined, entry(3)), false, 'there is one');
  t.equal(await register.replace(entry(1), entry(3)), false, 'another size');
  t.equal(await register.replace(entry(2, 9), entry(3)), false, 'another root');
  t.equal(
    await register.replace({ ...entry(2), keyHash: Buffer.alloc(32, 8) }, entry(3)),
    false,
    'another key',
  );
  t.equal(await register.replace(entry(2), entry(2)), true, 'itself');
  t.equal(await register.replace(entry(2), entry(3)), true);
  t.same(await readdir(folder), [`${ORIGIN}.checkpoint`]);
  t.same(await readdir(entryPlace(folder, ORIGIN)), [`3-${hex(3)}-${hex(7)}`]);
});

t.test('of many who compared with the same entry one replaces it', async (t) => {
  const folder = t.testdir();
  const registers = Array.from({ length: 8 }, () => openFileRegister(folder));
  for (let size = 0; size < 20; size++) {
    const standing = size === 0 ? undefined : await registers[0]!.read(ORIGIN);
    const wanted = registers.map((_, i) => entry(size + 1, 10 * (size + 1) + i));
    const done = await Promise.all(registers.map((register, i) => register.replace(standing, wanted[i]!)));
    t.same(done.filter(Boolean), [true]);
    t.same(await registers[0]!.read(ORIGIN), wanted[done.indexOf(true)]);
  }
});

t.test('a delayed writer undoes nothing, before its step or after it', async (t) => {
  const folder = t.testdir();
  const prompt = openFileRegister(folder);
  await prompt.replace(undefined, entry(1));
  let replaced = false;
  const late = openFileRegister(folder, async (path) => {
    if (!replaced) {
      replaced = true;
      t.equal(await prompt.replace(entry(1), entry(3, 33)), false, 'its step was first');
      t.equal(await prompt.replace(entry(2), entry(3)), true, 'and others went on from there');
    }
    await syncDirectory(path);
  });
  t.equal(await late.replace(entry(1), entry(2)), true);
  t.same(await prompt.read(ORIGIN), entry(3));
  t.equal(await late.replace(entry(1), entry(9)), false, 'a larger size is no reason');
  t.same(await prompt.read(ORIGIN), entry(3));
});

t.test('the entry of an earlier release is read, counts, and is replaced', async (t) => {
  const folder = t.testdir();
  const register = openFileRegister(folder);
  const former = (size: number) => writeFile(join(folder, ORIGIN), `${size} ${hex(size)}\n`);
  await former(4);
  const standing = await register.read(ORIGIN);
  t.same(standing, { ...entry(4), keyHash: undefined });
  t.equal(await register.replace(standing, entry(4)), true);
  t.same(await readdir(folder), [`${ORIGIN}.checkpoint`]);
  await former(3);
  t.same(await register.read(ORIGIN), entry(4), 'a smaller one is past');
  await former(6);
  const larger = await register.read(ORIGIN);
  t.equal(larger?.size, 6, 'a larger one was written by a process of that release');
  t.equal(await register.replace(entry(4), entry(5)), false);
  t.equal(await register.replace(larger, entry(7)), true);
  t.same(await register.read(ORIGIN), entry(7));
  t.same(await readdir(folder), [`${ORIGIN}.checkpoint`]);
});

t.test('an invalid entry is rejected with an error that names its path', async (t) => {
  const folder = t.testdir();
  const register = openFileRegister(folder);
  const place = entryPlace(folder, ORIGIN);
  const refused = async (why: RegExp) => {
    for (const run of [() => register.read(ORIGIN), () => register.replace(undefined, entry(1))]) {
      await t.rejects(async () => void (await run()), {
        name: 'RegisterError',
        message: new RegExp(`${ORIGIN}.*${why.source}`),
      });
    }
  };
  await mkdir(place);
  await refused(/it holds 0 files/);
  await writeFile(join(place, 'x'), '');
  await refused(/not one that is named <size>-<root hash>-<key hash>/);
  await writeFile(join(place, `1-${hex(1)}-${hex(7)}`), '');
  await refused(/it holds 2 files/);
  await writeFile(join(folder, ORIGIN), 'nothing');
  await refused(/is not "<size> <root hash>"/);
  const text = t.testdir({ file: '' });
  const misplaced = openFileRegister(join(text, 'file'));
  await t.rejects(misplaced.replace(undefined, entry(1)), { name: 'RegisterError', message: /ENOTDIR/ });
  t.equal(await readFile(join(text, 'file'), 'utf8'), '');
});

t.test('the first entry is whole or not there', async (t) => {
  const folder = t.testdir();
  const register = openFileRegister(folder);
  await Promise.all([register.replace(undefined, entry(1)), register.replace(undefined, entry(2))]);
  t.match(readEntry(folder, ORIGIN), /^[12] /);
  t.same(await readdir(folder), [`${ORIGIN}.checkpoint`], 'nothing else is left');
});
