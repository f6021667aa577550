/** What `attest submit` takes besides files, against the service: lists, checksums, digests and standard input. */
import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startApp } from '../../support/app.js';
import { runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { runAttest } from './attest-process.js';
import { digest } from './submitting.js';

const app = await startApp(t);
const { key } = await newKey(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };

const ODD = ['a b', '%41', 'é#?@', 'x:y+z', "it's (1)!", '-'];

function scene(t: Test) {
  const dir = t.testdir({ art: { one: 'one', sub: { two: 'two' } }, three: 'three' });
  const submit = (args: string[], input?: string) =>
    runAttest(t, ['submit', ...args], { cwd: dir, env, ...(input !== undefined && { input }) });
  return { dir, at: (name: string) => join(dir, name), submit };
}

/** What was recorded: package URL and digest, in the order printed. */
function recordedOf(stdout: string): [purl: string, sha256: string][] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => {
      const { submission } = JSON.parse(line);
      const { purl } = submission.metadata;
      return [purl.replace(/\?checksum=sha256%3A[0-9a-f]{64}$/, ''), submission.artifact.sha256];
    });
}

const countSubmissions = async () => {
  const [row] = await app.pool`select count(*)::int as n from submission`;
  return Number(row?.n);
};

t.test('files, digests, lists, checksums and standard input combine, in this order', async (t) => {
  const { at, submit } = scene(t);
  const gone = digest('gone');
  writeFileSync(at('list'), 'three\n\nart/one\n');
  writeFileSync(at('SUMS'), `${digest('two')}  art/sub/two\nSHA256 (not/here.bin) = ${gone.toUpperCase()}\n`);
  const args = [
    'art/one',
    `sha256:${gone.toUpperCase()}`,
    '-',
    '--files-from',
    'list',
    '--checksums',
    'SUMS',
  ];
  const { code, stdout, stderr } = await submit([...args, '--json'], 'typed');
  t.equal(code, 0, stderr);
  t.same(recordedOf(stdout), [
    ['pkg:generic/art/one', digest('one')],
    [`pkg:generic/${gone}`, gone],
    ['pkg:generic/stdin', digest('typed')],
    ['pkg:generic/three', digest('three')],
    ['pkg:generic/art/one', digest('one')],
    ['pkg:generic/art/sub/two', digest('two')],
    ['pkg:generic/not/here.bin', gone],
  ]);
});

t.test('a folder with --each keeps its path, a file elsewhere has its name only', async (t) => {
  const { at, submit } = scene(t);
  const each = await submit(['art', '--each', '--json']);
  t.same(recordedOf(each.stdout), [
    ['pkg:generic/art/one', digest('one')],
    ['pkg:generic/art/sub/two', digest('two')],
  ]);
  const elsewhere = await submit([at('art'), at('three'), '--each', '--json']);
  t.same(
    recordedOf(elsewhere.stdout).map(([purl]) => purl),
    ['pkg:generic/art/one', 'pkg:generic/art/sub/two', 'pkg:generic/three'],
  );
  const set = await submit(['art/sub', '--json']);
  t.match(JSON.parse(set.stdout).submission.metadata.purl, /^pkg:generic\/art\/sub\?checksum=/);
});

t.test('odd names go through lists, checksums and package URLs unchanged', async (t) => {
  const { dir, at, submit } = scene(t);
  for (const name of [...ODD, 'line\nbreak']) writeFileSync(at(`art/${name}`), name);
  const list = execFileSync('find', ['art', '-type', 'f', '-print0'], { cwd: dir, encoding: 'utf8' });
  const listed = await submit(['--files-from', '-', '-0', '--json'], list);
  t.equal(listed.code, 0, listed.stderr);
  const files = list.split('\0').slice(0, -1);
  const purlOf = (name: string) =>
    `pkg:generic/${name
      .split('/')
      .map((part) =>
        encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`),
      )
      .join('/')}`;
  t.same(
    recordedOf(listed.stdout).map(([purl]) => purl),
    files.map(purlOf),
  );
  const sums = execFileSync('sha256sum', ['--', ...files], { cwd: dir, encoding: 'utf8' });
  const summed = await submit(['--checksums', '-', '--json'], sums);
  t.same(recordedOf(summed.stdout), recordedOf(listed.stdout));
  const argument = await submit(['./art/-', '--json']);
  t.match(recordedOf(argument.stdout), [['pkg:generic/art/-', digest('-')]]);
});

t.test('malformed lists and wrong combinations are named, and nothing is submitted', async (t) => {
  const { at, dir } = scene(t);
  writeFileSync(at('latin'), Buffer.from('three\nf\xfcnf\n', 'latin1'));
  writeFileSync(at('nul'), 'three\0art/one\0');
  writeFileSync(at('long'), `three\n${'x'.repeat(10_001)}\n`);
  writeFileSync(at('missing'), `${at('three')}\nnot/here\n`);
  writeFileSync(at('folders'), `${at('art')}\n`);
  writeFileSync(at('empty'), '\n');
  writeFileSync(at('sums'), `${digest('x')}  x\nhello\n`);
  writeFileSync(at('md5'), `MD5 (x) = ${'ab'.repeat(16)}\n`);
  const before = await countSubmissions();
  const cases: [args: string[], message: RegExp][] = [
    [[], /there is nothing to submit/],
    [['--files-from', 'empty'], /there is nothing to submit/],
    [['--files-from', 'latin'], /latin: line 2 is not UTF-8/],
    [['--files-from', 'nul'], /nul: line 1 has a NUL: .*--null/],
    [['--files-from', 'long'], /long: line 2 is longer than 10000 bytes/],
    [['--files-from', 'missing'], /not\/here cannot be read: ENOENT/],
    [['--files-from', 'none'], /none cannot be read: ENOENT/],
    [['--files-from', 'folders'], /art is a directory: submit it alone, .*--each/],
    [['--checksums', 'sums'], /sums: line 2 is not a checksum/],
    [['--checksums', 'md5'], /md5: line 1 has a checksum by MD5/],
    [['three', 'sha256:12'], /sha256: is not followed by 64 hex digits/],
    [['-', '-'], /- is standard input, which can be read only once/],
    [['-', '--checksums', '-'], /- is standard input/],
    [['three', '--null'], /--null needs --files-from/],
    [['art', '-'], /art is a directory: submit it alone/],
    [['art', '--files-from', 'missing'], /art is a directory: submit it alone/],
    [['-', '--set', 's.json'], /are for the set of a folder/],
    [['art', '--wait', '--bundles', 'b'], /--bundles is for files/],
    [['three', '--bundles', 'b'], /--bundles needs --wait/],
    [['three', '--force'], /--force is for set file and bundles/],
    [['three', '--build', 'a', '--resume', 'b'], /--build and --resume both name the build/],
    [['three', '--build', ''], /--build is not 1 to 128 characters/],
    [['three', '--resume', 'a\nb'], /--resume is not 1 to 128 characters/],
    [['three', '--build', 'x'.repeat(129)], /--build is not 1 to 128 characters/],
  ];
  const names = readdirSync(dir);
  const inDir = (name: string) => (names.includes(name) ? at(name) : name);
  for (const [args, message] of cases) {
    const ended = await runHere(['submit', ...args.map(inDir)], { env });
    t.match(ended, { code: 2, stdout: '', stderr: message }, args.join(' '));
  }
  t.same(readdirSync(dir), names);
  t.equal(await countSubmissions(), before);
});
