/** `attest submit --public` and `--names`, against a service. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startService } from '../oci/attested-image.js';

const { attest } = await startService(t);
const TEST_RESULT = 'https://in-toto.io/attestation/test-result/v0.1';
const RESULT = JSON.stringify({
  schema: 'intoto.test_result.v0.1',
  result: 'PASSED',
  configuration: [{ name: 'unit', uri: 'https://ci.example/unit' }],
});
const REPORT = '<testsuite name="s" tests="1"><testcase name="a" classname="b"/></testsuite>';

/** A folder with the files of a build, and the trust roots of the service. */
function build(paths: readonly string[] = ['dist/app.tar', 'dist/app.sbom', 'dist/LICENSE']) {
  const dir = t.testdir();
  const at = (path: string) => join(dir, path);
  mkdirSync(at('dist'));
  for (const path of paths) writeFileSync(at(path), path);
  writeFileSync(at('report.xml'), REPORT);
  return { dir, at, bundle: at('build.bundle.json') };
}

const statementOf = (file: string) => {
  const { sigstore_bundle: bundle } = JSON.parse(readFileSync(file, 'utf8'));
  return JSON.parse(Buffer.from(bundle.dsseEnvelope.payload, 'base64').toString());
};

t.test('one bundle proves each file of a build, with its result', async (t) => {
  const { at, bundle } = build();
  const files = ['dist/app.tar', 'dist/app.sbom', 'dist/LICENSE'].map(at);
  const said = await attest(['submit', ...files, '--public', '--metadata', RESULT, '--wait', '-o', bundle]);
  t.match(said, { code: 0, stdout: /^sub_\w+ {2}witnessed {2}.*app\.tar and 2 more\n$/ });
  t.match(statementOf(bundle), { predicateType: TEST_RESULT, predicate: { result: 'PASSED' } });
  for (const file of files) {
    const { code, stdout } = await attest([
      'verify',
      file,
      '--bundle',
      bundle,
      '--environment',
      'live',
      '--json',
    ]);
    t.equal(code, 0, stdout);
    t.match(JSON.parse(stdout).verified, {
      predicate_type: TEST_RESULT,
      predicate: { result: 'PASSED' },
      subjects: [{ name: 'app.tar' }, { name: 'app.sbom' }, { name: 'LICENSE' }],
    });
  }
  const other = await attest(['verify', at('report.xml'), '--bundle', bundle]);
  t.match(other, { code: 1, stdout: /the artifact is not the one that was attested/ });
});

t.test('a folder is its files, of a report the files beside it, and of a set its head', async (t) => {
  const { at, bundle } = build();
  const forms: [args: string[], names: string[]][] = [
    [
      [at('dist'), '--metadata', RESULT],
      ['dist/LICENSE', 'dist/app.sbom', 'dist/app.tar'],
    ],
    [
      ['--junit', at('report.xml'), at('dist/app.tar')],
      ['report.xml', 'app.tar'],
    ],
    [[at('dist'), '--set', at('out.set.json'), '--metadata', RESULT], ['dist']],
  ];
  for (const [args, names] of forms) {
    const said = await attest(['submit', ...args, '--public', '--wait', '-o', bundle, '--force']);
    t.equal(said.code, 0, said.stderr);
    t.same(
      statementOf(bundle).subject.map(({ name }: { name: string }) => name),
      names,
    );
  }
});

t.test('the same build is continued, and a private submission is not taken for a public one', async (t) => {
  const { at } = build();
  const args = ['submit', at('dist/app.tar'), '--metadata', RESULT, '--quiet'];
  const hidden = await attest([...args, '--build', 'ci-1']);
  const first = await attest([...args, '--public', '--build', 'ci-2']);
  const again = await attest([...args, '--public', '--build', 'ci-2']);
  t.same([hidden.code, first.code, again], [0, 0, first]);
  t.not(hidden.stdout, first.stdout);
  const other = await attest([...args, '--public', '--build', 'ci-1']);
  t.match(other, { code: 1, stderr: /idempotency/i }, 'the key of the build is of another request');
});

t.test('--names puts the name into a private statement, too', async (t) => {
  const { at } = build();
  const args = ['submit', at('dist/app.tar'), '--wait', '--force', '--bundles', at('out')];
  t.match(await attest(args), { code: 0 });
  t.equal(statementOf(at('out/app.tar.bundle.json')).subject[0].name, undefined);
  t.match(await attest([...args, '--names']), { code: 0 });
  const [subject] = statementOf(at('out/app.tar.bundle.json')).subject;
  t.equal(subject.name, 'app.tar');
});

t.test('flags and files that do not fit are wrong arguments, and nothing is submitted', async (t) => {
  const { at } = build();
  const file = at('dist/app.tar');
  const cases: [args: string[], code: number, reason: RegExp][] = [
    [[file], 2, /--public needs --metadata/],
    [[file, '--metadata', RESULT, '--lenient'], 2, /--lenient does not go with --public/],
    [[file, '--metadata', RESULT, '--wait', '--bundles', at('x')], 2, /--bundles is for files/],
    [[file, '--metadata', RESULT, '-o', at('x')], 2, /--bundle needs --wait/],
    [[file, '--metadata', '{"schema":"purl","purl":"pkg:npm/a@1"}'], 1, /predicate type/],
    [[file, '--metadata', '{"schema":"intoto.test_result.v0.1"}'], 1, /fails its schema/],
  ];
  for (const [args, code, reason] of cases) {
    t.match(await attest(['submit', ...args, '--public']), { code, stderr: reason }, args.join(' '));
  }
  const many = at('SHA256SUMS');
  const lines = Array.from({ length: 1025 }, (_, i) => `${i.toString(16).padStart(64, '0')}  file-${i}\n`);
  writeFileSync(many, lines.join(''));
  const tooMany = await attest(['submit', '--checksums', many, '--public', '--metadata', RESULT]);
  t.match(tooMany, { code: 2, stderr: /at most 1,024 files, and there are 1025/ });
  writeFileSync(many, lines.slice(1).join(''));
  const most = await attest(['submit', '--checksums', many, '--public', '--metadata', RESULT, '--json']);
  t.match(most, { code: 0 });
  t.equal(JSON.parse(most.stdout).submission.subject_count, 1023);
});
