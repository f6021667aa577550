/** `attest submit --junit`. */
import '../../../support/foreign/git.js';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Code } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import { problemsOf } from '../../../server/schema/samples.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { serviceError } from '../../../support/servers/rpc-server.js';
import { digest } from '../../submit/submitting.js';
import { serveResults } from '../serving.js';
import { SAMPLES } from './reading.js';

const PASSING = '<testsuite><testcase classname="a" name="b"/></testsuite>';

/** A folder with some reports, and the command in it. */
async function reports(t: Test) {
  const dir = t.testdir({
    one: { 'TEST-a.xml': PASSING, 'pom.xml': '<project/>' },
    two: { below: { 'TEST-b.xml': PASSING.replace('"b"', '"c"'), 'summary.xml': '<summary/>' } },
    gradle: { test: { 'a.xml': PASSING } },
    'app.bin': 'app',
  });
  const { created, env } = await serveResults(t);
  const set = join(dir, 'out.set.json');
  return {
    dir,
    created,
    set,
    at: (path: string) => join(dir, path),
    submit: (...args: string[]) => runHere(['submit', ...args], { env: { ...process.env, ...env } }),
  };
}

t.test('one report is attested itself, with the files that it is about', async (t) => {
  const { at, submit, created } = await reports(t);
  const report = at('one/TEST-a.xml');
  const { code, stdout } = await submit('--junit', report, at('app.bin'));
  t.match({ code, stdout }, { code: 0, stdout: `sub_1  queued  ${report}\n` });
  t.match(created[0]?.artifact, { sha256: digest(PASSING) });
  t.same(created[0]?.metadata, {
    schema: 'intoto.test_result.v0.1',
    result: 'PASSED',
    configuration: [{ name: 'app.bin', digest: { sha256: digest('app') } }],
    attest_counts: { tests: 1, passed: 1, warned: 0, failed: 0, skipped: 0 },
    failedTests: [],
    warnedTests: [],
    passedTests: ['a > b'],
  });
});

t.test('several, by folder, pattern or name, are one set', async (t) => {
  const { at, dir, set, submit, created } = await reports(t);
  const entries = () =>
    JSON.parse(readFileSync(set, 'utf8')).entries.map(({ path }: { path: string }) => path);
  const both = ['one/TEST-a.xml', 'two/below/TEST-b.xml'];
  for (const [args, paths] of [
    [['--junit', at('two'), '--junit', at('one')], both],
    [['--junit', at('one/TEST-a.xml'), '--junit', at('two')], both],
    [['--junit', `${dir}/**/TEST-*.xml`], both],
    [['--junit', at('one/TEST-*.xml'), '--junit', at('two/*/TEST-?.xml')], both],
  ] as const) {
    const { code, stderr } = await submit(...args, '--set', set, '--force', '--wait', '-o', at('b.json'));
    t.equal(code, 0, stderr);
    t.same(entries(), paths);
    const { head } = JSON.parse(readFileSync(set, 'utf8'));
    t.match(created.at(-1), {
      artifact: { sha256: digest(JSON.stringify(head)) },
      metadata: { result: 'PASSED', attest_counts: { tests: 2, passed: 2 } },
    });
  }
  t.match(await submit('--junit', at('one'), '--junit', at('two'), '--set', set), {
    code: 2,
    stderr: /out\.set\.json exists, .* --force/,
  });
  t.match(await submit('--junit', at('one'), '--set', set, '--force'), { code: 0 });
  t.same(entries(), ['TEST-a.xml'], 'one is a set if it is asked for');
  // A report that is named twice counts once, and one alone needs no set.
  t.match(await submit('--junit', at('one'), '--junit', at('one/TEST-a.xml'), '--json'), { code: 0 });
  t.match(created.at(-1)?.metadata, { attest_counts: { tests: 1 } });
  t.match(await submit('--junit', at('gradle')), { code: 0 });
});

t.test('what cannot be meant is an error, and nothing is submitted', async (t) => {
  const { at, submit, created } = await reports(t);
  const report = at('one/TEST-a.xml');
  for (const [args, said] of [
    [['--junit', at('none.xml')], /none\.xml cannot be read: ENOENT/],
    [['--junit', at('none/*.xml')], /there is no report/],
    [['--junit', at('two/below/summary.xml')], /the root element is <summary>/],
    [['--junit', report, at('two/below/TEST-b.xml')], /TEST-b\.xml is a report, too: repeat --junit/],
    [['--junit', report, at('none')], /none cannot be read/],
    [['--junit', report, at('one')], /one is a directory/],
    [['--junit', report, '--metadata', '{"schema":"purl"}'], /--junit makes the metadata/],
    [['--junit', report, '--each'], /leave out --each/],
    [['--junit', report, '--bundles', at('b')], /leave out --bundles/],
    [['--junit', report, '-o', at('b.json')], /--bundle needs --wait/],
    [['--junit', report, '--run-url', 'ftp://a.example'], /--run-url is not a URL of http/],
    [['--junit', report, '--run-url', 'https://a:b@a.example'], /a user or a password/],
    [['--junit', report, '--timeout', '1'], /--timeout is not/],
    [['--run-url', 'https://a.example', report], /--run-url needs --junit/],
    [[], /there is nothing to submit/],
  ] as const) {
    const ended = await submit(...args);
    t.equal(ended.code, 2, args.join(' '));
    t.match(ended.stderr, said);
  }
  t.same(created, []);
});

t.test('--build continues: the same set and the same keys', async (t) => {
  const { at, set, submit } = await reports(t);
  const { env, requests } = await serveResults(t);
  const args = ['submit', '--junit', at('one'), '--junit', at('two'), '--set', set, '--build', 'ci-1'];
  const run = () => runHere(args, { env });
  t.match(await run(), { code: 0 });
  const text = readFileSync(set, 'utf8');
  t.match(await run(), { code: 0 });
  t.equal(readFileSync(set, 'utf8'), text);
  const keys = requests.flatMap(({ headers }) => headers['idempotency-key'] ?? []);
  t.match(keys, [/^[0-9a-f]{64}$/, keys[0]]);
  writeFileSync(at('one/TEST-a.xml'), PASSING.replace('"b"', '"z"'));
  t.match(await run(), { code: 2, stderr: /--force/ });
  t.match(await submit(...args.slice(1), '--force'), { code: 0 });
});

t.test('the URL of the run is recorded when it is asked for', async (t) => {
  const dir = t.testdir({ 'r.xml': PASSING });
  const { created, env } = await serveResults(t);
  const github = {
    GITHUB_SERVER_URL: 'https://github.com',
    GITHUB_REPOSITORY: 'acme/shop',
    GITHUB_RUN_ID: '7',
  };
  for (const [more, url, flags = ['--run-url', 'ci']] of [
    [github, undefined, []],
    [github, 'https://github.com/acme/shop/actions/runs/7'],
    [{ ...github, GITHUB_RUN_ATTEMPT: '2' }, 'https://github.com/acme/shop/actions/runs/7/attempts/2'],
    [{ CI_JOB_URL: 'https://gitlab.example/a/-/jobs/1' }, 'https://gitlab.example/a/-/jobs/1'],
    [{ BUILD_URL: 'http://jenkins.example/job/a/1/' }, 'http://jenkins.example/job/a/1/'],
    [{}, 'https://ci.example/1', ['--run-url', 'https://ci.example/1']],
  ] as [Record<string, string>, string | undefined, string[]?][]) {
    const args = ['submit', '--junit', join(dir, 'r.xml'), ...flags];
    t.equal((await runHere(args, { env: { ...env, ...more } })).code, 0);
    t.equal(created.at(-1)?.metadata?.url, url);
  }
  const none = await runHere(['submit', '--junit', join(dir, 'r.xml'), '--run-url', 'ci'], { env });
  t.match(none, { code: 2, stderr: /no GITHUB_SERVER_URL .*no CI_JOB_URL and no BUILD_URL/ });
});

t.test('metadata of every sample, with all details, passes its schema and is below 64 KiB', async (t) => {
  const dir = t.testdir();
  const long = join(dir, 'long.xml');
  const names = Array.from(
    { length: 3_000 },
    (_, i) => `<testcase name="${'ü'.repeat(20)}${i}"><failure/></testcase>`,
  );
  writeFileSync(long, `<testsuite>${names.join('')}<testcase name="${'z'.repeat(2_000)}"/></testsuite>`);
  const { created, env } = await serveResults(t);
  for (const report of [join(SAMPLES, 'playwright.xml'), join(SAMPLES, 'pytest.xml'), long]) {
    const args = ['submit', '--junit', report, 'README.md', '--git', '--run-url', 'https://ci.example/1'];
    const { code, stderr } = await runHere(args, { env: { ...process.env, ...env } });
    t.equal(code, 0, stderr);
    const metadata = created.at(-1)?.metadata ?? {};
    t.same(problemsOf(metadata), [], report);
    t.ok(JSON.stringify(metadata).length < 65_536);
  }
  const { failedTests, attest_omitted: omitted } = (created.at(-1)?.metadata ?? {}) as {
    failedTests: string[];
    attest_omitted: { failedTests: number; passedTests: number };
  };
  t.ok(failedTests.length > 900, 'as many failed tests as there is room for');
  t.same(omitted, { failedTests: 3_000 - failedTests.length, passedTests: 1 });
});

t.test('files whose names and digests alone exceed the metadata are an error', async (t) => {
  const dir = t.testdir({ 'r.xml': PASSING });
  mkdirSync(join(dir, 'f'));
  const files = Array.from({ length: 600 }, (_, i) => relative('.', join(dir, 'f', `file-${i}`)));
  for (const file of files) copyFileSync('README.md', file);
  const { created, env } = await serveResults(t);
  const ended = await runHere(['submit', '--junit', join(dir, 'r.xml'), ...files], { env });
  t.match(ended, { code: 2, stderr: /longer than 64 KiB: name fewer files/ });
  t.same(created, []);
});

t.test('an error of the service is reported, and a set is kept', async (t) => {
  const { at, set } = await reports(t);
  const { env } = await serveResults(t, () => serviceError('auth.missing_scope', Code.PermissionDenied));
  const args = ['submit', '--junit', at('one'), '--junit', at('two'), '--set', set];
  t.match(await runHere(args, { env }), { code: 1, stderr: /auth\.missing_scope/ });
  t.match(JSON.parse(readFileSync(set, 'utf8')), { head: { entries: 2 } });
});

t.test('--git adds the commit to the purl of a file', async (t) => {
  const { at, submit, created } = await reports(t);
  const { code, stderr } = await submit(at('app.bin'), '--git');
  // Of this checkout, which may have no remote.
  if (code === 2) return t.match(stderr, /no remote origin/);
  t.match(created[0]?.metadata?.purl, /vcs_url=git%2B/);
});
