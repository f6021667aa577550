import { execFileSync } from 'node:child_process';
import { createWriteStream, readdirSync } from 'node:fs';
import { chmod, mkdir, rename, rm, symlink, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip, gzipSync } from 'node:zlib';
import t from 'tap';
import { objectBytes } from '../../proof/export/export-sample.js';
import { EXPORT_ID } from '../../proof/export/manifest-sample.js';
import { PRINT_MEMORY } from '../../support/calling/print-memory.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { until } from '../../support/until.js';
import { download, folderOf, fourth, OTHER_PROJECT, PATHS, third } from './downloaded-export.js';

const MIB = 1024 * 1024;
/** What a process that holds all of the bomb exceeds. */
const MOST_MIB = 400;
const BOMB_MIB = 2 * MOST_MIB;

t.test('problems of gzip files are named', async (t) => {
  const whole = gzipSync(objectBytes(third.lines));
  const cases: [what: string, bytes: Uint8Array, said: RegExp][] = [
    ['cut off', whole.subarray(0, -9), /third: it is not a whole gzip file: unexpected end of file/],
    [
      'garbage after it',
      Buffer.concat([whole, Buffer.from('garbage')]),
      /third: it is not a whole gzip file: incorrect/,
    ],
    [
      'zeros after it',
      Buffer.concat([whole, Buffer.alloc(9)]),
      /third:3: there are bytes after the end of the gzip file/,
    ],
    [
      'a flipped bit',
      whole.with(whole.length - 6, whole[whole.length - 6]! ^ 1),
      /it is not a whole gzip file: incorrect data check/,
    ],
    [
      'not compressed',
      objectBytes(third.lines),
      /third: it is not a whole gzip file: incorrect header check/,
    ],
    ['empty', new Uint8Array(), /third: it is not a whole gzip file/],
    ['another file', gzipSync(Buffer.from('x\n')), /third:1: the line is not JSON/],
  ];
  for (const [what, bytes, said] of cases) {
    const { write, verify } = await download(t, { ending: '.jsonl.gz' });
    await write(`${PATHS.third}.gz`, bytes);
    const { code, stdout } = await verify();
    t.equal(code, 1, what);
    t.match(stdout.replaceAll(`${PATHS.third}.gz`, 'third'), said, what);
  }
});

t.test('a gzip bomb costs bounded memory and time', async (t) => {
  const { at, args } = await download(t);
  /** So many MiB of a character, compressed to a thousandth. */
  async function writeBomb(name: string, character: string, mib: number): Promise<void> {
    const piece = Buffer.alloc(MIB, character);
    await pipeline(Array(mib).fill(piece), createGzip({ level: 1 }), createWriteStream(at(name)));
  }
  await writeBomb('spaces.jsonl.gz', ' ', BOMB_MIB);
  await writeBomb('newlines.jsonl.gz', '\n', BOMB_MIB);
  for (const [name, said] of [
    ['spaces', /:1: a line is longer than 1 MiB/],
    ['newlines', /:1002: too many lines are wrong: the rest is not verified|and 902 more problems/],
  ] as const) {
    const { code, stdout, stderr } = await runProcess(args(`${name}.jsonl.gz`), PRINT_MEMORY);
    t.equal(code, 1);
    t.match(stdout, said);
    const kib = Number(stderr.trim());
    t.ok(kib > 1000 && kib < MOST_MIB * 1024, `${kib} KiB`);
  }
});

t.test('a directory as large as it likes is read in little memory', async (t) => {
  const { write, args } = await download(t, { hasLarge: true });
  const { code, stdout } = await runHere(args());
  t.match({ code, stdout }, { code: 0, stdout: /1006 verified/ });
  const progress = await runHere(args(), { terminal: 80 });
  t.equal(progress.code, 0);
  t.ok(progress.stderr.startsWith('\r\x1b[Kverifying ['), 'a bar is drawn');
  t.ok(progress.stderr.endsWith('\r\x1b[K'), 'the bar is erased');
  await write('notes.txt', 'other files are ignored');
  await write('.hidden/x.jsonl', 'hidden ones too');
  t.equal((await runHere(args())).code, 0);
});

t.test('symbolic links are not followed, and unreadable files are not verified', async (t) => {
  const { at, verify, write } = await download(t);
  await write('elsewhere', 'x');
  await rename(at(PATHS.third), at('elsewhere'));
  await symlink(at('elsewhere'), at(PATHS.third));
  const linked = await verify();
  t.match(linked, {
    code: 1,
    stdout: /not checked {2}.*jsonl: it is a symbolic link, which is not followed/,
  });
  t.match(linked.stdout, /which it lists, is missing/);
  await rm(at(PATHS.third));
  await rename(at('elsewhere'), at(PATHS.third));
  await symlink(at(''), at('loop'));
  t.match(await verify(), {
    code: 2,
    stdout: /not checked {2}loop: .*symbolic link/,
  });
});

t.test('a named pipe is not read, and reported as not checked', async (t) => {
  const { at, verify } = await download(t);
  execFileSync('mkfifo', [at('pipe.jsonl')]);
  const { code, stdout } = await verify();
  t.equal(code, 2);
  t.match(stdout, /not checked {2}pipe\.jsonl: it is a named pipe, which is not read/);
});

t.test('a file or folder without permission cannot be checked', async (t) => {
  const { at, verify } = await download(t);
  const isRoot = process.getuid?.() === 0;
  await rm(at(PATHS.fourth));
  await mkdir(at(PATHS.fourth));
  t.match(await verify(), { code: 1, stdout: /which it lists, is missing/ }, 'a folder is no object');
  await chmod(at(dirname(PATHS.third)), 0o000);
  const { code, stdout } = await verify();
  await chmod(at(dirname(PATHS.third)), 0o700);
  if (isRoot) t.equal(code, 1, 'root reads everything');
  else t.match(stdout, /the folder cannot be read: EACCES/);
});

t.test('a manifest of more than 64 MiB cannot be checked', async (t) => {
  const { at, verify } = await download(t);
  await truncate(at(PATHS.manifest), 65 * MIB);
  t.match(await verify(PATHS.manifest), { code: 2, stdout: /is too large for a manifest: over 64 MiB/ });
});

t.test('many files that cannot be inflated are closed again', async (t) => {
  const { verify, write } = await download(t);
  const countOpen = () => readdirSync('/dev/fd').length;
  const before = countOpen();
  for (let i = 0; i < 50; i++) await write(`broken/${i}.jsonl.gz`, 'x'.repeat(300 * 1024));
  t.match(await verify('broken'), { code: 1, stdout: /problems in 50 objects/ });
  await until('as many open files as before', () => countOpen() <= before);
});

t.test('folders must be those of the export as far down as they are given', async (t) => {
  const { at, verify } = await download(t);
  const live = `attestations/${EXPORT_ID}/live`;
  const moves: [from: string, to: string, path: string][] = [
    [`${live}/2025/06/07`, `${live}/2025/06/09`, ''],
    [`${live}/2025/06`, `${live}/2025/07`, live],
    [live, `attestations/${EXPORT_ID}/test`, `attestations/${EXPORT_ID}/test/2025/06/07`],
    [`attestations/${EXPORT_ID}`, `attestations/${EXPORT_ID.replace('WQ1', 'WQ2')}`, ''],
  ];
  for (const [from, to, path] of moves) {
    await rename(at(from), at(to));
    t.match(
      await verify(path),
      { code: 1, stdout: /it is the manifest of 2025-06-07 .*, in another folder/ },
      to,
    );
    await rename(at(to), at(from));
  }
  await rename(at(`${live}/2025/06/07`), at('mine'));
  t.match(await verify('mine'), { code: 0 }, 'a folder that the user named');
});

t.test('objects that no manifest lists yet are named, and must not overlap', async (t) => {
  const { at, verify, write } = await download(t);
  for (const day of ['2025-06-06', '2025-06-07', '2025-06-08'])
    await rm(at(`${folderOf(day)}/manifest.json`));
  const { code, stdout } = await verify();
  t.equal(code, 0);
  t.match(stdout, /not covered by a manifest yet: .*06\/06\/btc_.*jsonl and 2 more\n/);
  t.match(stdout, /No manifest covers 3 objects: nothing proves that none is missing\.\n$/);
  await write(`${PATHS.fourth}.gz`, gzipSync(objectBytes(fourth.lines)));
  t.match(await verify(), {
    code: 1,
    stdout: /jsonl.gz: it has leaves \d+ to \d+ of .*, some of which .*\.jsonl has too/,
  });
});

t.test('arguments, trust roots and environment are as for a bundle', async (t) => {
  const { args, at, verify, write } = await download(t);
  await mkdir(at('empty/folder'), { recursive: true });
  await write('other.json', '{}');
  await write('no-roots', '[]');
  const table: [args: string[], said: RegExp][] = [
    [args('empty'), /^error: .*empty has no exported objects and no manifests\n$/],
    [args('gone'), /^error: .*gone cannot be read: ENOENT/],
    [args('other.json'), /^error: .*other.json is neither a .jsonl or .jsonl.gz file nor a manifest.json\n$/],
    [[...args(), 'file'], /^error: --export goes with no file, --bundle/],
    [[...args(), '--bundle', 'b'], /^error: --export goes with no file, --bundle/],
    [[...args(), '--metadata', '{}', '--metadata-salt', '00'], /^error: --export goes with no file/],
    [[...args(), '--project', 'x'], /^error: --project is not the id/],
    [
      ['verify'],
      /^error: required option '--bundle <file>' not specified, nor --bundles <dir>, nor --export <path>\n$/,
    ],
    [['verify', '--export', at(''), '--data-dir', at('')], /^error: there are no trust roots/],
    [
      ['verify', '--export', at(''), '--trust-roots', at('no-roots')],
      /^error: the trust roots cannot be read: the document must/,
    ],
  ];
  for (const [wrong, said] of table) {
    const { code, stdout, stderr } = await runHere(wrong);
    t.match({ code, stdout }, { code: 2, stdout: '' }, wrong.join(' '));
    t.match(stderr, said);
  }
  t.match(await verify('', '--environment', 'test'), {
    code: 1,
    stdout: /is of the live environment, not test/,
  });
  t.match(await verify('', '--project', OTHER_PROJECT), {
    code: 1,
    stdout: /not of prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0/,
  });
});

t.test('names of files cannot send control characters to the terminal', async (t) => {
  const { verify, write } = await download(t);
  await write('a\u001b[2J\u202e.jsonl', 'x\n');
  const { code, stdout } = await verify();
  t.equal(code, 1);
  t.notOk(['\u001b', '\u202e'].some((character) => stdout.includes(character)));
});
