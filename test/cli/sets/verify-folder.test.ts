/** `attest verify` of folders and of files in sets. */
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { presentOf } from '../../client/files/folders.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { attestFolder, setOf } from './attested-folder.js';

const PATHS = ['a-b', 'a/b', 'one', 'shots/shot.png', 'two'];

t.test('a folder with the files of its set is verified, with exit code 0', async (t) => {
  const { art, evidence } = await attestFolder(t, PATHS);
  const { code, stdout, stderr } = await runProcess(['verify', art, ...evidence]);
  t.match({ code, stderr }, { code: 0, stderr: '' });
  t.match(stdout, /^Files: 5 ok, 0 changed, 0 missing, 0 extra, 0 withheld; the set has 5 files\n/);
  t.match(stdout, /\nThe set of 5 files was attested under sub_.* existed no later than .*\n$/);
});

t.test('files that are changed, missing, extra or moved are named, and nothing is verified', async (t) => {
  const { art, evidence } = await attestFolder(t, PATHS);
  writeFileSync(join(art, 'one'), 'One');
  rmSync(join(art, 'two'));
  writeFileSync(join(art, 'new\u202e'), 'new');
  renameSync(join(art, 'a-b'), join(art, 'a-c'));
  const args = ['verify', art, ...evidence];
  const { code, stdout } = await runHere(args);
  t.equal(code, 1);
  t.match(
    stdout,
    /^changed {3}one\nmissing {3}a-b\nmissing {3}two\nextra {5}a-c\nextra {5}new\ufffd\nFiles: 2 ok, 1 changed/,
  );
  t.match(
    stdout,
    /\nNot verified: the files of the folder are not those of the set \(1 changed, 2 missing, 2 extra\)\.\n$/,
  );
  const json = await runHere([...args, '--json']);
  t.equal(json.code, 1);
  const report = JSON.parse(json.stdout);
  t.match(report, {
    verdict: 'not_verified',
    files: {
      ...{ ok: 2, changed: 1, missing: 2, extra: 2, withheld: 0 },
      paths: { changed: ['one'], missing: ['a-b', 'two'], extra: ['a-c', 'new\u202e'] },
    },
  });
  t.notOk('statement' in report || 'set' in report, 'nothing is stated as proven');
});

t.test('of very many files that differ the first are listed, with --json all', async (t) => {
  const paths = Array.from({ length: 30 }, (_, i) => `f${i}`);
  const { art, evidence } = await attestFolder(t, ['kept', ...paths]);
  for (const path of paths) rmSync(join(art, path));
  const { stdout } = await runHere(['verify', art, ...evidence]);
  t.equal(stdout.match(/^missing {3}f/gm)?.length, 20);
  t.match(stdout, /^missing {3}and 10 more$/m);
  const json = await runHere(['verify', art, ...evidence, '--json']);
  t.equal(JSON.parse(json.stdout).files.paths.missing.length, 30);
});

t.test('--extra-ok lets extra files pass, and no others', async (t) => {
  const { art, evidence } = await attestFolder(t, PATHS);
  writeFileSync(join(art, 'new'), 'new');
  t.match(await runHere(['verify', art, ...evidence]), { code: 1, stdout: /\(1 extra\)\.\n$/ });
  const passed = await runHere(['verify', art, ...evidence, '--extra-ok', '--json']);
  t.match(
    { ...passed, report: JSON.parse(passed.stdout) },
    { code: 0, report: { verdict: 'verified', files: { extra: 1 } } },
  );
  writeFileSync(join(art, 'one'), 'One');
  t.match(await runHere(['verify', art, ...evidence, '--extra-ok']), {
    code: 1,
    stdout: /\(1 changed\)\.\n$/,
  });
});

t.test('.attestignore cannot hide itself, nor a file that the set has', async (t) => {
  const { art, evidence } = await attestFolder(t, PATHS);
  writeFileSync(join(art, 'new'), 'new');
  writeFileSync(join(art, '.attestignore'), 'new\none\n.attestignore\n');
  const { code, stdout } = await runHere(['verify', art, ...evidence]);
  t.equal(code, 1);
  t.match(stdout, /^missing {3}one\nextra {5}\.attestignore\nFiles: 4 ok/);
});

t.test('set and bundle inside the folder are no files of it', async (t) => {
  const { art, evidence, text, bundleText, trust } = await attestFolder(t, PATHS);
  writeFileSync(join(art, 'set.json'), text);
  writeFileSync(join(art, 'bundle.json'), bundleText);
  const inside = ['--set', join(art, 'set.json'), '--bundle', join(art, 'bundle.json'), ...trust];
  t.match(await runHere(['verify', art, ...inside]), { code: 0, stdout: /^Files: 5 ok, .* 0 extra/ });
  t.match(await runHere(['verify', art, ...evidence]), {
    code: 1,
    stdout: /^extra {5}bundle\.json\nextra {5}set\.json\n/,
  });
});

t.test('a folder that cannot be hashed could not be checked, and its files are named', async (t) => {
  const { art, evidence } = await attestFolder(t, PATHS);
  symlinkSync('one', join(art, 'link'));
  const { code, stdout, stderr } = await runHere(['verify', art, ...evidence]);
  t.match({ code, stdout }, { code: 2, stdout: '' });
  t.match(stderr, /^error: 1 file cannot be hashed:\n {2}link is a symbolic link/);
  t.match(await runHere(['verify', art, ...evidence, '--exclude', 'link']), { code: 0 });
});

t.test('the set of another folder, a forged or a cut one is not verified, by its code', async (t) => {
  const { at, art, text, evidence } = await attestFolder(t, PATHS);
  const lines = text.split('\n');
  const moved = [lines[0], lines[2], lines[1], ...lines.slice(3)].join('\n');
  const cases: [what: string, text: string, code: string][] = [
    ['other salts', setOf(PATHS).text, 'set.head'],
    [
      'a hash that is changed',
      text.replace(presentOf('one').sha256, presentOf('two').sha256),
      'set.inclusion',
    ],
    ['two entries that changed places', moved, 'set.shape'],
    ['an end that is cut off', text.slice(0, -80), 'set.shape'],
  ];
  for (const [what, forged, code] of cases) {
    writeFileSync(at('run.set.json'), forged);
    const ended = await runHere(['verify', art, ...evidence, '--json']);
    t.equal(ended.code, 1, what);
    const { verdict, steps } = JSON.parse(ended.stdout);
    t.equal(verdict, 'not_verified');
    const failed = steps[1].checks.filter(({ status }: { status: string }) => status === 'failed');
    t.equal(failed[0].code, code, what);
  }
});

t.test('one file of a set is found by its digest, or must be at a path', async (t) => {
  const { at, art, evidence } = await attestFolder(t, PATHS);
  const shot = join(art, 'shots/shot.png');
  const found = await runHere(['verify', shot, ...evidence]);
  t.match(found, {
    code: 0,
    stdout: /\nThis artifact is shots\/shot\.png in the set of 5 files that was attested/,
  });
  const json = await runHere(['verify', shot, ...evidence, '--path', 'shots/shot.png', '--json']);
  t.match(JSON.parse(json.stdout), {
    verdict: 'verified',
    set: {
      head: { entries: 5 },
      entry: { path: 'shots/shot.png', sha256: presentOf('shots/shot.png').sha256 },
      index: 3,
    },
  });
  t.match(await runHere(['verify', shot, ...evidence, '--path', 'one']), {
    code: 1,
    stdout: /the file is not one of the set/,
  });
  writeFileSync(at('other'), 'other');
  t.match(await runHere(['verify', at('other'), ...evidence]), {
    code: 1,
    stdout: /the file is not in the set/,
  });
});

t.test('the checkpoint that the set names is shown', async (t) => {
  const notBefore = { origin: 'live.log.example', rootHash: 'ab'.repeat(32), treeSize: 7 };
  const { art, evidence } = await attestFolder(t, PATHS, notBefore);
  const { stdout } = await runHere(['verify', art, ...evidence]);
  t.match(
    stdout,
    /\nThe set names the checkpoint of 7 leaves of live\.log\.example, root (?:ab)+: if the log has it/,
  );
  const json = await runHere(['verify', art, ...evidence, '--json']);
  t.match(JSON.parse(json.stdout).set.head.not_before, { tree_size: 7 });
});

t.test('flags that do not go together, and files in each other’s place, are wrong usage', async (t) => {
  const { at, art, evidence, trust } = await attestFolder(t, PATHS);
  const [, set = '', , bundle = ''] = evidence;
  const file = join(art, 'one');
  const cases: [args: string[], message: RegExp][] = [
    [[art, '--bundle', bundle], /is a directory: give its set file with --set/],
    [[art, ...evidence, '--path', 'one'], /--path is for one file/],
    [[file, ...evidence, '--extra-ok'], /need a folder/],
    [[file, ...evidence, '--include', 'x'], /need a folder/],
    [[art, '--set', at('none'), '--bundle', bundle, ...trust], /none cannot be read: ENOENT/],
    [[art, '--set', art, '--bundle', bundle, ...trust], /is a directory/],
    [['--export', art, '--set', set], /--export goes with no file/],
  ];
  for (const [args, message] of cases) {
    t.match(await runHere(['verify', ...args]), { code: 2, stdout: '', stderr: message }, args.join(' '));
  }
  const swapped = await runHere(['verify', art, '--set', bundle, '--bundle', set, ...trust]);
  t.match(swapped, { code: 2, stdout: /the bundle is a set file, .* give both, the set with --set\.\n$/ });
});

t.test('a set file that is too large for a bundle is recognised', async (t) => {
  const { at, art, evidence, trust } = await attestFolder(t, PATHS);
  const paths = Array.from({ length: 30_000 }, (_, i) => `f${i}`);
  writeFileSync(at('large.json'), setOf(paths).text);
  const ended = await runHere(['verify', art, '--set', evidence[1]!, '--bundle', at('large.json'), ...trust]);
  t.match(ended, { code: 2, stderr: /large\.json is a set file, not a bundle: give it with --set/ });
});
