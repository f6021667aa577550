/** `attest verify --bundles`: a folder against the bundles of its files. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { proveMember } from '../../../src/proof/set/set-proof.js';
import { presentOf } from '../../client/files/folders.js';
import { PROJECT } from '../../proof/sample.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { attestFolder } from '../sets/attested-folder.js';
import { attestFiles, bundlesOf } from './attested-files.js';

const PATHS = ['a-b', 'a/b', 'one', 'shots/shot.png', 'two'];

t.test('a folder whose files all have a bundle is verified, by any name', async (t) => {
  const { args, at } = await attestFiles(t, PATHS);
  renameSync(at('proofs/one.bundle.json'), at('proofs/a/x.json'));
  renameSync(at('art/two'), at('art/three'));
  const { code, stdout, stderr } = await runProcess(args);
  t.match({ code, stderr }, { code: 0, stderr: '' });
  t.match(
    stdout,
    /^Files: 5 ok, 0 changed, 0 missing, 0 extra, 0 failed, 0 could not check; 5 bundles\n\nTrusting the file /,
  );
  t.match(
    stdout,
    new RegExp(`\n5 files were attested by the project ${PROJECT} and existed no later than 2`),
  );
  const json = JSON.parse((await runHere([...args, '--json', '--project', PROJECT])).stdout);
  t.match(json, {
    verdict: 'verified',
    bundles: 5,
    files: { ok: 5, paths: { changed: [], missing: [], extra: [], failed: [], could_not_check: [] } },
    projects: [PROJECT],
  });
  t.ok(Date.parse(json.existed_by.latest) > 0);
});

t.test('a terminal shows how many bundles are verified', async (t) => {
  const { args } = await attestFiles(t, ['one', 'two']);
  const { code, stderr } = await runHere(args, { terminal: 80 });
  t.equal(code, 0);
  t.match(stderr, /verifying \[[#.]+\] +\d+% {2}[12] of 2 bundles/);
});

t.test('files that are changed, missing or extra are named, with exit code 1', async (t) => {
  const { args, art } = await attestFiles(t, PATHS);
  writeFileSync(join(art, 'one'), 'One');
  rmSync(join(art, 'two'));
  writeFileSync(join(art, 'new\u202e'), 'new');
  const { code, stdout } = await runHere(args);
  t.equal(code, 1);
  t.match(
    stdout,
    /^changed {6}one \(one\.bundle\.json\)\nmissing {6}two \(two\.bundle\.json\)\nextra {8}new\ufffd\nFiles: 3 ok, 1 changed, 1 missing, 1 extra,/,
  );
  t.match(stdout, /\nNot verified: .* of the bundles \(1 changed, 1 missing, 1 extra\)\.\n$/);
  const json = await runHere([...args, '--json']);
  const report = JSON.parse(json.stdout);
  t.match(
    [json.code, report],
    [
      1,
      {
        verdict: 'not_verified',
        files: { ok: 3, paths: { changed: ['one'], missing: ['two'], extra: ['new\u202e'] } },
        missing: [{ path: 'two', bundle: 'two.bundle.json' }],
      },
    ],
  );
  t.notOk('projects' in report || 'existed_by' in report, 'nothing is stated as proven');
  t.match(await runHere([...args, '--extra-ok']), { code: 1, stdout: /\(1 changed, 1 missing\)\.\n$/ });
});

t.test('a file is changed also if its bundle was recorded from outside the folder', async (t) => {
  const { args, at, write, bundles } = await attestFiles(t, ['a/one', 'two']);
  rmSync(at('proofs'), { recursive: true });
  write('proofs/art/a/one.bundle.json', bundles[0]);
  write('proofs/other/two.bundle.json', bundles[1]);
  t.match(await runHere(args), { code: 0 });
  for (const path of ['a/one', 'two']) writeFileSync(at(`art/${path}`), 'altered');
  t.match(await runHere(args), {
    code: 1,
    stdout:
      /^changed {6}a\/one \(art\/a\/one\.bundle\.json\)\nmissing {6}other\/two \(other\/two\.bundle\.json\)\nextra {8}two\n/,
  });
});

t.test('--extra-ok lets files without a bundle pass, and no others', async (t) => {
  const { args, art } = await attestFiles(t, PATHS);
  writeFileSync(join(art, 'new'), 'new');
  t.match(await runHere(args), { code: 1, stdout: /\(1 extra\)\.\n$/ });
  t.match(await runHere([...args, '--extra-ok']), { code: 0, stdout: / 1 file without a bundle/ });
  t.match(await runHere([...args, '--exclude', 'new']), { code: 0 });
});

t.test('a bundle that does not verify fails with its reason, and its file is not extra', async (t) => {
  const { args, write, bundles, at } = await attestFiles(t, PATHS);
  const [other] = await bundlesOf(['a-b'], undefined, 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0');
  write('proofs/a-b.bundle.json', other);
  const ofProject = [...args, '--project', PROJECT];
  t.match(await runHere(ofProject), {
    code: 1,
    stdout: /^FAILED {7}a-b \(a-b\.bundle\.json\): the project prj_.*0 attested it, not prj_/,
  });
  const report = JSON.parse((await runHere([...ofProject, '--json'])).stdout);
  t.match(report, {
    files: { ok: 4, failed: 1, extra: 0, paths: { failed: ['a-b'] } },
    failed: [{ path: 'a-b', bundle: 'a-b.bundle.json', reason: /attested it/ }],
  });
  t.equal(report.failed[0].steps.length, 8);
  t.match(await runHere(args), { code: 0, stdout: /by the projects prj_.*, prj_/ }, 'any project will do');
  t.match(await runHere([...args, '--environment', 'test']), { code: 1, stdout: /^Files: 0 ok.* 5 failed/m });
  t.match(await runHere([...args, '--require-witness', 'b']), { code: 1, stdout: / 5 failed/ });
  t.match(await runHere([...args, '--min-witnesses', '3']), { code: 1, stdout: / 5 failed/ });
  write('proofs/a-b.bundle.json', bundles[0]);
  write('proofs/again.json', other);
  t.match(await runHere(ofProject), { code: 1, stdout: /^FAILED {7}a-b \(again\.json\)[\s\S]*Files: 5 ok/ });
  rmSync(at('proofs/again.json'));
  t.match(await runHere(ofProject), { code: 0 });
});

t.test('two bundles of one file are one file; an older one, whose file is gone, is missing', async (t) => {
  const { args, at, write, bundles } = await attestFiles(t, ['one', 'two']);
  write('proofs/deep/one.json', bundles[0]);
  t.match(await runHere(args), { code: 0, stdout: /^Files: 2 ok, .*; 3 bundles\n/ });
  const [newer] = await bundlesOf(['One']);
  writeFileSync(at('art/one'), 'One');
  write('proofs/deep/one.json', newer);
  t.match(await runHere(args), { code: 1, stdout: /^missing {6}one \(one\.bundle\.json\)\nFiles: 2 ok/ });
});

t.test('bundles beside their files are no files, and other .json files are', async (t) => {
  const { art, trust, write, bundles } = await attestFiles(t, ['one', 'two', 'result.json']);
  for (const [i, path] of ['one', 'two', 'result.json'].entries()) {
    write(`art/${path}.bundle.json`, bundles[i]);
  }
  const args = ['verify', art, '--bundles', art, ...trust];
  t.match(await runHere(args), { code: 0, stdout: /^Files: 3 ok, .*; 3 bundles\n/ });
  mkdirSync(join(art, 'proofs'));
  renameSync(join(art, 'one.bundle.json'), join(art, 'proofs/1.json'));
  t.match(await runHere(args), { code: 0, stdout: /^Files: 3 ok, .*; 3 bundles\n/ });
  write('art/other.json', '{"result":1}');
  t.match(await runHere(args), { code: 1, stdout: /^extra {8}other\.json\n/ });
  rmSync(join(art, 'other.json'));
  write('art/two.bundle.json', 'cut');
  t.match(await runHere(args), {
    code: 2,
    stdout: /^not checked {2}two \(two\.bundle\.json\): the bundle is not JSON/,
  });
  const only = ['verify', join(art, 'proofs'), '--bundles', join(art, 'proofs'), ...trust, '--extra-ok'];
  write('art/proofs/1.json', '{}');
  t.match(await runHere(only), {
    code: 2,
    stdout: '',
    stderr: /has no bundles: no \.json file below it is one/,
  });
});

t.test('a bundle with a member proof counts for the member', async (t) => {
  const { at, art, text, bundleText, trust } = await attestFolder(t, PATHS);
  mkdirSync(at('proofs'));
  for (const [i, path] of PATHS.entries()) {
    const proof = await proveMember([Buffer.from(text)], path);
    const bundle = { ...JSON.parse(bundleText), set_proof: proof };
    writeFileSync(at(`proofs/${i}.json`), JSON.stringify(bundle));
  }
  const args = ['verify', art, '--bundles', at('proofs'), ...trust];
  t.match(await runHere(args), { code: 0, stdout: /^Files: 5 ok/ });
  writeFileSync(join(art, 'one'), 'One');
  rmSync(join(art, 'two'));
  t.match(await runHere(args), {
    code: 1,
    stdout: /^changed {6}one \(2\.json\)\nmissing {6}two \(4\.json\)\nFiles: 3 ok/,
  });
  writeFileSync(join(art, 'one'), 'one');
  const forged = JSON.parse(readFileSync(at('proofs/4.json'), 'utf8'));
  forged.set_proof.entry.sha256 = presentOf('new').sha256;
  writeFileSync(at('proofs/4.json'), JSON.stringify(forged));
  writeFileSync(join(art, 'two'), 'new');
  t.match(await runHere(args), {
    code: 1,
    stdout: /^FAILED {7}two \(4\.json\): the entry is not/,
  });
});

t.test('one file is verified with the bundle that is of it', async (t) => {
  const { at, trust, proofs, write, bundles } = await attestFiles(t, PATHS);
  const args = ['verify', at('art/one'), '--bundles', proofs, ...trust];
  t.match(await runHere(args), {
    code: 0,
    stdout: /^Bundle one\.bundle\.json\nok {11}shape[\s\S]*\nThis artifact was attested under sub_/,
  });
  const byDigest = ['verify', `sha256:${presentOf('two').sha256}`, '--bundles', proofs, ...trust, '--json'];
  const found = await runHere(byDigest);
  t.match(JSON.parse(found.stdout), { bundle: 'two.bundle.json', verdict: 'verified' });
  writeFileSync(at('art/one'), 'One');
  t.match(await runHere(args), {
    code: 1,
    stdout: /^Not verified: none of the 5 files below .* that end with \.json is a bundle of this file\.\n$/,
  });
  writeFileSync(at('art/one'), 'one');
  const [other] = await bundlesOf(['one'], undefined, 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0');
  write('proofs/0.json', other);
  const ofProject = [...args, '--project', PROJECT, '--json'];
  t.match(JSON.parse((await runHere(ofProject)).stdout), { bundle: 'one.bundle.json', verdict: 'verified' });
  write('proofs/one.bundle.json', bundles[1]);
  const failed = await runHere(ofProject);
  t.match([failed.code, JSON.parse(failed.stdout)], [1, { bundle: '0.json', verdict: 'not_verified' }]);
});

t.test('flags that do not go together are wrong usage', async (t) => {
  const { at, args, trust, proofs } = await attestFiles(t, ['one']);
  const file = at('art/one');
  const cases: [args: string[], message: RegExp][] = [
    [[...args, '--metadata', '{}'], /--bundles goes with no --bundle, .*--metadata/],
    [[...args, '--receipt', 'x'], /--bundles goes with no .*--receipt/],
    [[...args, '--set', 'x'], /--bundles goes with no .*--set/],
    [[...args, '--bundle', 'x'], /--bundles goes with no --bundle/],
    [['verify', '--bundles', proofs], /missing required argument 'file'/],
    [['verify', '--export', proofs, '--bundles', proofs], /--export goes with no file, --bundle, --bundles/],
    [['verify', file, '--bundles', proofs, ...trust, '--extra-ok'], /need a folder/],
    [['verify', at('art'), '--bundles', at('none'), ...trust], /none cannot be read: ENOENT/],
    [['verify', at('art'), '--bundles', file, ...trust], /one cannot be read: ENOTDIR/],
    [['verify', at('art'), '--bundles', at('art'), ...trust], /art has no bundles: no file below it ends/],
    [['verify', at('none'), '--bundles', proofs, ...trust], /none cannot be read: ENOENT/],
    [['verify', at('art'), '--bundles', proofs, '--trust-roots', file], /trust roots in .* not valid JSON/],
    [
      ['verify', at('art'), '--bundles', proofs, '--trust-roots', at('proofs/one.bundle.json')],
      /the trust roots cannot be read/,
    ],
  ];
  for (const [given, message] of cases) {
    t.match(await runHere(given), { code: 2, stdout: '', stderr: message }, given.join(' '));
  }
});
