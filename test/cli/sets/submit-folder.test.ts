/** `attest submit` of folders, against the service. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { writeSet } from '../../../src/cli/sets/make-set.js';
import { makeFolder, presentOf, sortedPaths } from '../../client/files/folders.js';
import { startApp } from '../../support/app.js';
import { runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';

const PATHS = ['a-b', 'a/b', 'logs/x.log', 'one', 'two.tmp'];

const app = await startApp(t);
const { key } = await newKey(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };

/** A folder `art` with files, and the command that submits it. */
function scene(test: Test, paths: readonly string[] = PATHS) {
  const dir = test.testdir();
  const at = (name: string) => join(dir, name);
  mkdirSync(at('art'));
  makeFolder(test, paths, at('art'));
  const submit = (...flags: string[]) =>
    runHere(['submit', at('art'), '--set', at('run.set.json'), ...flags], { env });
  const entries = () => JSON.parse(readFileSync(at('run.set.json'), 'utf8')).entries;
  const pathsInSet = () => entries().map(({ path }: { path: string }) => path);
  return { dir, at, art: at('art'), submit, entries, pathsInSet };
}

const countSubmissions = async () => {
  const [row] = await app.pool`select count(*)::int as n from submission`;
  return Number(row?.n);
};

t.test('a folder is one submission, whose bundle and set verify it', async (t) => {
  const { at, art, submit, entries } = scene(t);
  const before = await countSubmissions();
  const { code, stdout, stderr } = await submit('--wait', '--bundle', at('run.bundle.json'), '--json');
  t.equal(code, 0, stderr);
  t.equal((await countSubmissions()) - before, 1);
  const { file, set, submission } = JSON.parse(stdout);
  t.match(
    { file, set },
    { file: art, set: { file: at('run.set.json'), head: { entries: 5 }, bytes: PATHS.join('').length } },
  );
  t.match(submission, {
    status: 'witnessed',
    artifact: { sha256: set.head_sha256 },
    metadata: { schema: 'purl', purl: `pkg:generic/art?checksum=sha256%3A${set.head_sha256}` },
  });
  t.match(stderr, /wrote .*run\.set\.json, a set of 5 files, 26 B\nwrote .*run\.bundle\.json, \d+ bytes\n$/);
  t.match(entries(), sortedPaths(PATHS).map(presentOf));
  const salts = entries().map(({ salt }: { salt: string }) => salt);
  t.equal(new Set(salts).size, PATHS.length, 'each salt is its own');
  const evidence = [
    '--set',
    at('run.set.json'),
    '--bundle',
    at('run.bundle.json'),
    '--verify-url',
    app.verifyUrl,
  ];
  t.match(await runHere(['verify', art, ...evidence]), { code: 0, stdout: /^Files: 5 ok, 0 changed/ });
  t.match(await runHere(['verify', join(art, 'one'), ...evidence]), { code: 0 });
  writeFileSync(join(art, 'one'), 'other');
  t.match(await runHere(['verify', art, ...evidence]), { code: 1, stdout: /^changed {3}one\n/ });
});

t.test('patterns choose the files, and .attestignore is one of them', async (t) => {
  const { art, submit, pathsInSet } = scene(t);
  writeFileSync(join(art, '.attestignore'), '# scratch\r\n*.tmp\r\n/logs/\n');
  t.match(await submit(), { code: 0 });
  t.same(pathsInSet(), ['.attestignore', 'a-b', 'a/b', 'one']);
  t.match(await submit('--force', '--exclude', 'a', '--exclude', '.*'), { code: 0 });
  t.same(pathsInSet(), ['a-b', 'one']);
  t.match(await submit('--force', '--include', 'a*', '--include', 'logs/'), { code: 0 });
  t.same(pathsInSet(), ['a-b', 'a/b']);
  t.match(await submit('--force', '--include', 'nothing'), {
    code: 2,
    stderr: /the folder has no files to attest/,
  });
  t.same(pathsInSet(), ['a-b', 'a/b'], 'the set before is still there');
});

t.test('outputs in the folder are not in the set', async (t) => {
  const { art, submit } = scene(t);
  const inside = join(art, 'inside.json');
  const bundle = join(art, 'bundle.json');
  writeFileSync(bundle, 'of the last run');
  writeFileSync(join(art, '.inside.json.0123456789ab.tmp'), 'of a run that was killed');
  const flags = ['--set', inside, '--bundle', bundle, '--wait', '--force'];
  t.match(await submit(...flags), { code: 0 });
  const { entries } = JSON.parse(readFileSync(inside, 'utf8'));
  t.same(
    entries.map(({ path }: { path: string }) => path),
    sortedPaths(PATHS),
  );
});

t.test('links inside the folder are followed with --follow-symlinks', async (t) => {
  const { art, submit, entries } = scene(t);
  symlinkSync('one', join(art, 'link'));
  t.match(await submit('--follow-symlinks'), { code: 0 });
  const link = entries().find(({ path }: { path: string }) => path === 'link');
  t.equal(link.sha256, presentOf('one').sha256);
  symlinkSync('..', join(art, 'up'));
  t.match(await submit('--follow-symlinks', '--force'), {
    code: 2,
    stderr: /up is a symbolic link out of the folder/,
  });
});

t.test('a terminal shows files, bytes, rate and time left', async (t) => {
  const { at, art } = scene(t);
  const { code, stderr } = await runHere(['submit', art, '--set', at('s.json')], { env, terminal: 120 });
  t.equal(code, 0);
  t.match(stderr, /Khashing \[[#.]+\] +\d+% {2}\d of 5 files, \d+ B, .*B\/s, \d+ s left/);
  t.match(stderr, /left.*Kwrote .*s\.json, a set of 5 files/s, 'and then nothing of it');
});

t.test('--not-before names the newest checkpoint of the log', async (t) => {
  const { at, art, submit } = scene(t);
  const flags = ['--verify-url', app.verifyUrl, '--not-before'];
  t.match(await submit(...flags, '--wait', '--bundle', at('b.json')), { code: 0 });
  const { head } = JSON.parse(readFileSync(at('run.set.json'), 'utf8'));
  const { sigstore_bundle: bundle } = JSON.parse(readFileSync(at('b.json'), 'utf8'));
  const [entry] = bundle.verificationMaterial.tlogEntries;
  t.match(head.not_before, { origin: 'live.log.example.com', root_hash: /^[0-9a-f]{64}$/ });
  t.ok(head.not_before.tree_size >= 1 && head.not_before.tree_size <= Number(entry.logIndex));
  const evidence = ['--set', at('run.set.json'), '--bundle', at('b.json'), '--verify-url', app.verifyUrl];
  t.match(await runHere(['verify', art, ...evidence]), {
    code: 0,
    stdout: /\nThe set names the checkpoint of/,
  });
});

t.test('--each submits every file that the patterns choose', async (t) => {
  const { art } = scene(t);
  const before = await countSubmissions();
  const { code, stdout } = await runHere(['submit', art, '--each', '--exclude', '*.tmp'], { env });
  t.equal(code, 0);
  const files = stdout
    .trim()
    .split('\n')
    .map((line) => line.split('  ')[2]);
  t.same(
    files,
    ['a-b', 'a/b', 'logs/x.log', 'one'].map((path) => join(art, path)),
  );
  t.equal((await countSubmissions()) - before, 4);
});

t.test('nothing is submitted, and no file written, if a file or a flag is wrong', async (t) => {
  const { dir, at, art, submit } = scene(t);
  mkdirSync(at('empty'));
  const before = await countSubmissions();
  symlinkSync('one', join(art, 'link'));
  t.match(await submit(), {
    code: 2,
    stderr: /^error: 1 file cannot be hashed:\n {2}link is a symbolic link/,
  });
  rmSync(join(art, 'link'));
  writeFileSync(at('old.json'), 'old');
  const cases: [args: string[], message: RegExp][] = [
    [[at('empty'), '--set', at('run.set.json')], /the folder has no files to attest/],
    [[art, '--set', at('old.json')], /old\.json exists, perhaps as the only copy: .*--force/],
    [[art, '--set', join(dir, 'none/set.json')], /set\.json cannot be written: ENOENT/],
    [[art, '--set', at('run.set.json'), '--bundle', at('b.json')], /--bundle needs --wait/],
    [[art, '--set', at('b.json'), '--bundle', at('b.json'), '--wait'], /are one file/],
    [[art, join(art, 'one')], /is a directory: submit it alone, as one set, or with --each/],
    [[art, at('empty')], /is a directory: submit it alone/],
    [[join(art, 'one'), '--set', at('b.json')], /are for the set of a folder/],
    [[at('empty'), '--each'], /the folder or list is empty/],
    [[art, '--each', '--not-before'], /are for the set of a folder/],
    [[join(art, 'one'), '--exclude', 'x'], /need a folder/],
  ];
  for (const [args, message] of cases) {
    const ended = await runHere(['submit', ...args], { env });
    t.match(ended, { code: 2, stdout: '', stderr: message }, args.join(' '));
  }
  t.same(readdirSync(dir).sort(), ['art', 'empty', 'old.json']);
  t.equal(readFileSync(at('old.json'), 'utf8'), 'old');
  t.equal(await countSubmissions(), before);
});

t.test('the set is there before the submission, and stays if that fails', async (t) => {
  const { at, art } = scene(t);
  const rejected = ['submit', art, '--set', at('s.json'), '--schema', 'purl', '--metadata', '{"purl": 1}'];
  t.match(await runHere(rejected, { env }), {
    code: 1,
    stderr: /s\.json is kept; to continue: .*--resume run-\w+\nerror: .*invalid_metadata/,
  });
  t.ok(existsSync(at('s.json')));
  t.match(await runHere([...rejected, '--lenient', '--force', '--quiet'], { env }), {
    code: 0,
    stdout: /^sub_\w+\n$/,
  });
});

t.test('a set file that another run writes meanwhile is not overwritten', async (t) => {
  const path = join(t.testdir(), 'run.set.json');
  const files = async function* () {
    yield { path: 'a', bytes: 1, sha256: 'a'.repeat(64) };
    writeFileSync(path, 'the set of another run');
  };
  await t.rejects(writeSet(path, files(), { notBefore: undefined }), {
    message:
      /run\.set\.json was written meanwhile, by another run: with its --build the same command takes it/,
  });
  t.equal(readFileSync(path, 'utf8'), 'the set of another run');
  t.same(readdirSync(join(path, '..')), ['run.set.json']);
  await writeSet(path, files(), { notBefore: undefined, force: true });
  t.match(readFileSync(path, 'utf8'), /"entries":/);
});
