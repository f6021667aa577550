/** `attest verify --junit`, as read by an XML parser of others. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { runHere } from '../../support/calling/run-cli.js';
import { XMLLINT } from '../../support/foreign/xmllint.js';
import { attestFolder } from '../sets/attested-folder.js';
import { attestFiles } from './attested-files.js';
import { JUNIT_SCHEMA } from './junit-schema.js';

const SCHEMA = join(t.testdir({ 'junit.xsd': JUNIT_SCHEMA }), 'junit.xsd');

/** A reader of a report: validates it, and evaluates XPath expressions as text. */
function readReport(t: Test, path: string) {
  execFileSync(XMLLINT, ['--noout', '--nonet', '--schema', SCHEMA, path], { stdio: 'pipe' });
  const evaluate = (xpath: string) => String(execFileSync(XMLLINT, ['--xpath', xpath, path])).trim();
  const countsOf = (element: string) =>
    ['tests', 'failures', 'errors'].map((name) => Number(evaluate(`string(//${element}/@${name})`)));
  const counts = ['testcase', 'testcase/failure', 'testcase/error', 'testcase/skipped'].map((path) =>
    Number(evaluate(`count(//${path})`)),
  );
  t.strictSame(countsOf('testsuites'), counts.slice(0, 3), 'the counts are those of the cases');
  t.strictSame(countsOf('testsuite'), counts.slice(0, 3));
  t.equal(Number(evaluate('string(//testsuite/@skipped)')), counts[3]);
  return { evaluate, counts };
}

const PATHS = ['a/b', 'one', 'shots/shot.png', 'two'];

t.test('a report of a folder and its bundles has a test case for each file', async (t) => {
  const { args, at, art, write } = await attestFiles(t, PATHS);
  const junit = ['--junit', at('report.xml')];
  t.match(await runHere([...args, ...junit]), { code: 0 });
  t.strictSame(readReport(t, at('report.xml')).counts, [4, 0, 0, 0]);
  writeFileSync(join(art, 'one'), 'One');
  rmSync(join(art, 'two'));
  writeFileSync(join(art, 'new'), 'new');
  write('proofs/a/b.bundle.json', '');
  const bundle = JSON.parse(readFileSync(at('proofs/shots/shot.png.bundle.json'), 'utf8'));
  bundle.submission.leaf_sha256 = '0'.repeat(64);
  write('proofs/shots/shot.png.bundle.json', bundle);
  let ticks = 0;
  const now = () => new Date(Date.UTC(2026, 1, 3, 4, 5, 6) + 250 * ticks++);
  t.match(await runHere([...args, ...junit], { now }), { code: 1 });
  const { evaluate, counts } = readReport(t, at('report.xml'));
  t.strictSame(counts, [5, 4, 1, 0]);
  const messageOf = (name: string) => evaluate(`string(//testcase[@name="${name}"]/*/@message)`);
  t.equal(messageOf('one'), 'the file is not the one of its bundle one.bundle.json');
  t.equal(messageOf('two'), 'no file is the one of the bundle two.bundle.json');
  t.equal(messageOf('new'), 'no bundle is of this file');
  t.equal(messageOf('a/b'), 'a/b.bundle.json: the bundle is empty');
  t.equal(evaluate('string(//testcase[@name="a/b"]/error/@type)'), 'could_not_check');
  t.match(messageOf('shots/shot.png'), /: leaf_sha256 is not the hash of the leaf$/);
  t.equal(
    evaluate('string(//testcase[@name="shots/shot.png"]/failure)'),
    'leaf failed: leaf_sha256 is not the hash of the leaf',
  );
  t.ok(Number(evaluate('string(//testsuite/@time)')) >= 0.25, 'by the clock of the command');
  t.match(evaluate('string(//testsuite/@timestamp)'), /^2026-02-03T04:05:0\d$/);
  const passed = await runHere([...args, ...junit, '--extra-ok']);
  t.equal(passed.code, 1);
  t.strictSame(readReport(t, at('report.xml')).counts, [5, 3, 1, 1], 'an extra file is skipped');
});

t.test('names with markup, control characters and half surrogates are written as text', async (t) => {
  const { args, at, art } = await attestFiles(t, ['one']);
  const names = [
    `<&>"'`,
    ']]>',
    '\u0001\u001b[31m',
    'a\nb\tc',
    '\ufffe\uffff',
    '\u{1f600}',
    '&amp;<!--',
    'e\u202e',
  ];
  for (const name of names) writeFileSync(join(art, name), name);
  t.match(await runHere([...args, '--junit', at('report.xml')]), { code: 1 });
  const { evaluate, counts } = readReport(t, at('report.xml'));
  t.strictSame(counts, [9, 8, 0, 0]);
  const found = Array.from({ length: 9 }, (_, i) => evaluate(`string(//testcase[${i + 1}]/@name)`));
  const shown = [
    `<&>"'`,
    ']]>',
    '\ufffd\ufffd[31m',
    'a\ufffdb\ufffdc',
    '\ufffd\ufffd',
    '\u{1f600}',
    '&amp;<!--',
  ];
  t.strictSame(found.sort(), ['one', ...shown, 'e\ufffd'].sort());
});

t.test('a report of a folder and its set has one for the bundle, and one for each path', async (t) => {
  const { at, art, evidence } = await attestFolder(t, PATHS);
  const args = ['verify', art, ...evidence, '--junit', join(art, 'report.xml')];
  t.match(await runHere(args), { code: 0 });
  t.match(await runHere(args), { code: 0 }, 'the report is no file of the folder');
  t.strictSame(readReport(t, join(art, 'report.xml')).counts, [5, 0, 0, 0]);
  writeFileSync(join(art, 'one'), 'One');
  rmSync(join(art, 'two'));
  writeFileSync(join(art, 'new'), 'new');
  t.match(await runHere(args), { code: 1 });
  const { evaluate, counts } = readReport(t, join(art, 'report.xml'));
  t.strictSame(counts, [6, 3, 0, 0]);
  const types = ['one', 'two', 'new'].map((name) => evaluate(`string(//testcase[@name="${name}"]/*/@type)`));
  t.strictSame(types, ['changed', 'missing', 'extra']);
  writeFileSync(at('run.set.json'), 'cut');
  t.match(await runHere(args), { code: 1 });
  t.strictSame(readReport(t, join(art, 'report.xml')).counts, [1, 1, 0, 0], 'nothing is known of the files');
});

t.test('a report of one file has one test case', async (t) => {
  const { at, art, proofs, trust } = await attestFiles(t, ['one', 'two']);
  const report = ['--junit', at('report.xml'), ...trust];
  const ways: [what: string, evidence: string[]][] = [
    ['its bundle', ['--bundle', join(proofs, 'one.bundle.json')]],
    ['the bundle that is found', ['--bundles', proofs]],
  ];
  for (const [what, evidence] of ways) {
    writeFileSync(join(art, 'one'), 'one');
    t.match(await runHere(['verify', join(art, 'one'), ...evidence, ...report]), { code: 0 }, what);
    t.strictSame(readReport(t, at('report.xml')).counts, [1, 0, 0, 0], what);
    writeFileSync(join(art, 'one'), 'One');
    t.match(await runHere(['verify', join(art, 'one'), ...evidence, ...report]), { code: 1 }, what);
    const { evaluate, counts } = readReport(t, at('report.xml'));
    t.strictSame(counts, [1, 1, 0, 0], what);
    t.equal(evaluate('string(//testcase/@name)'), join(art, 'one'));
  }
});

t.test('a report that cannot be written is wrong usage', async (t) => {
  const { args, at } = await attestFiles(t, ['one']);
  mkdirSync(at('folder'));
  for (const path of [at('none/report.xml'), at('folder')]) {
    t.match(await runHere([...args, '--junit', path]), {
      code: 2,
      stdout: '',
      stderr: / cannot be written: E/,
    });
  }
  t.notOk(existsSync(at('none')));
  t.match(await runHere(['verify', '--export', at('art'), '--junit', 'x']), {
    code: 2,
    stderr: /--export goes with/,
  });
});
