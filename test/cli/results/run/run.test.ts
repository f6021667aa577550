/** `attest run`: its exit codes, and what it attests. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Code } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import type { BatchItem } from '../../../../gen/attestation/v1/attestations_pb.js';
import { runHere, runProcess } from '../../../support/calling/run-cli.js';
import { serviceError } from '../../../support/servers/rpc-server.js';
import { digest } from '../../submit/submitting.js';
import { serveResults } from '../serving.js';

const PASSING = '<testsuite><testcase classname="a" name="b"/></testsuite>';
const FAILING = '<testsuite><testcase classname="a" name="b"><failure/></testcase></testsuite>';

/** A folder and the command; `sh` is what it runs, with the folder as `$0`. */
async function scene(t: Test, refuse?: Parameters<typeof serveResults>[1]) {
  const dir = t.testdir();
  const { created, env } = await serveResults(t, refuse);
  const at = (path: string) => join(dir, path);
  const run = (flags: readonly string[], sh: string, more: Record<string, string> = {}) =>
    runProcess(['run', ...flags, '--', '/bin/sh', '-c', sh, dir], { ...env, ...more });
  return { dir, at, created, env, run, set: ['--set', at('run.set.json'), '--force'] };
}

const write = (report: string, exitCode = 0) => `echo '${report}' > $0/r.xml; exit ${exitCode}`;

t.test('the exit code is that of the command, and a failing run is attested as failing', async (t) => {
  const { at, created, run } = await scene(t);
  const cases: [report: string, exitCode: number, result: string][] = [
    [PASSING, 0, 'PASSED'],
    [FAILING, 1, 'FAILED'],
    [FAILING, 0, 'FAILED'],
    [PASSING, 7, 'FAILED'],
  ];
  for (const [report, exitCode, result] of cases) {
    const ended = await run(['--junit', at('r.xml')], write(report, exitCode));
    t.match(ended, { code: exitCode, stdout: '' });
    t.match(ended.stderr, `sub_${created.length}  queued  ${at('r.xml')}\n`);
    t.match(created.at(-1), {
      artifact: { sha256: digest(`${report}\n`) },
      metadata: { result, configuration: [], attest_command: { program: 'sh', exitCode } },
    });
  }
  t.equal(created.length, cases.length);
});

t.test('--only-passing attests neither a failing command nor a failing test', async (t) => {
  const { at, created, run } = await scene(t);
  const flags = ['--junit', at('r.xml'), '--only-passing'];
  t.match(await run(flags, write(FAILING, 3)), { code: 3, stderr: /exit code 3: nothing was attested/ });
  t.match(await run(flags, write(FAILING)), { code: 0, stderr: /a test failed: nothing was attested/ });
  t.same(created, []);
  t.match(await run(flags, write(PASSING)), { code: 0, stderr: /sub_1/ });
});

t.test('a command that is not there, cannot be run, or is killed has the code of shells', async (t) => {
  const { at, created, env, run } = await scene(t);
  const flags = ['run', '--junit', at('r.xml'), '--'];
  t.match(await runProcess([...flags, 'no-such-program'], env), {
    code: 127,
    stderr: 'error: no-such-program: command not found\n',
  });
  writeFileSync(at('file'), 'not a program', { mode: 0o644 });
  t.match(await runProcess([...flags, at('file')], env), { code: 126, stderr: /file cannot be run: EACCES/ });
  t.same(created, []);
  const killed = await run(['--junit', at('r.xml')], `echo '${FAILING}' > $0/r.xml; kill -SEGV $$`);
  t.equal(killed.code, 139);
  t.match(created[0]?.metadata, { result: 'FAILED', attest_command: { exitCode: 139, signal: 'SIGSEGV' } });
});

t.test('without a report the result is that of the command', async (t) => {
  const { at, created, run, set } = await scene(t);
  for (const [code, result] of [
    [0, 'PASSED'],
    [4, 'FAILED'],
  ] as const) {
    const ended = await run(
      ['--attest', at('out'), ...set],
      `mkdir -p $0/out; date > $0/out/a$$; exit ${code}`,
    );
    t.equal(ended.code, code, ended.stderr);
    t.same(created.at(-1)?.metadata, {
      schema: 'intoto.test_result.v0.1',
      result,
      configuration: [],
      attest_command: { program: 'sh', exitCode: code },
    });
  }
});

t.test('a report that an earlier run left is not attested', async (t) => {
  const { at, created, run } = await scene(t);
  writeFileSync(at('r.xml'), PASSING);
  const flags = ['--junit', at('r.xml')];
  const stale = /r\.xml was not written by the command, and is not attested/;
  const ended = await run(flags, 'true');
  t.match(ended, { code: 1, stderr: stale });
  t.match(
    ended.stderr,
    /error: the command wrote no report and no files.*\nthe command passed, but attesting it was not completed/,
  );
  t.match(await run(flags, 'exit 5'), { code: 5, stderr: stale });
  t.match(await run(flags, 'touch -r $0/r.xml $0/t; true'), { code: 1, stderr: stale });
  t.same(created, []);
  // The same bytes, and the time of the former file: written again all the same.
  const again = 'cp -p $0/r.xml $0/new; mv $0/new $0/r.xml';
  t.match(await run(flags, again), { code: 0 });
  t.equal(created.length, 1);
});

t.test('files count if they are new or changed, in a set with the reports', async (t) => {
  const { at, created, run, set } = await scene(t);
  mkdirSync(at('out'));
  for (const name of ['old', 'changed', 'same-length']) writeFileSync(at(`out/${name}`), name);
  writeFileSync(at('out/.attestignore'), 'ignored\n*.link\n');
  const sh = `cd $0; echo '${PASSING}' > out/r.xml; echo more >> out/changed; printf 12345678901 > out/same-length
    touch out/ignored out/x.tmp; mkdir out/new; echo new > out/new/file; ln -s /etc/passwd out/a.link`;
  const flags = ['--junit', at('out/r.xml'), '--attest', at('out'), '--exclude', '*.tmp', ...set];
  const ended = await run(flags, sh);
  t.equal(ended.code, 0, ended.stderr);
  const { entries } = JSON.parse(readFileSync(at('run.set.json'), 'utf8'));
  t.same(
    entries.map(({ path }: { path: string }) => path),
    ['changed', 'new/file', 'r.xml', 'same-length'],
  );
  t.match(created[0]?.metadata, { attest_counts: { tests: 1 } });
  // In the same folders paths are the same, also if fewer files are written.
  await run(flags, 'echo more >> $0/out/new/file');
  t.match(readFileSync(at('run.set.json'), 'utf8'), /"path":"new\/file"/);
});

t.test('--each submits the report with the result, and each file with a package URL', async (t) => {
  const { at, created, run } = await scene(t);
  const flags = ['--junit', at('out/r.xml'), '--attest', at('out'), '--each', '--wait', '--build', 'ci-1'];
  const ended = await run(
    flags,
    `cd $0; mkdir -p out/b; echo '${FAILING}' > out/r.xml; echo a > out/a; echo a > out/b/a; exit 1`,
  );
  t.equal(ended.code, 1, ended.stderr);
  t.match(ended.stderr, /^sub_1 {2}witnessed .*r\.xml\nsub_2 {2}witnessed .*a\nsub_3 {2}witnessed .*b\/a\n$/);
  t.match(created[0]?.metadata, { schema: 'intoto.test_result.v0.1', result: 'FAILED' });
  const [, a, twin] = created as BatchItem[];
  t.match(a, { artifact: { sha256: digest('a\n') }, metadata: { purl: /^pkg:generic\/out\/a\?checksum=/ } });
  t.match(twin?.metadata, { schema: 'purl', purl: /^pkg:generic\/out\/b\/a\?checksum=/ });
  t.not(twin?.idempotencyKey, a?.idempotencyKey, 'files that are alike have a submission each');
  t.throws(() => readFileSync('run.set.json'), { code: 'ENOENT' });
});

t.test('--each that stops names the command that submits the rest, and no file twice', async (t) => {
  let calls = 0;
  // The report and the first file are recorded, but not the second, so that their call fails.
  const isOver = () => ++calls === 3;
  const lost = serviceError('auth.invalid_key', Code.Unauthenticated);
  const { at, created, env, run } = await scene(t, () => (isOver() ? lost : undefined));
  const flags = ['--junit', at('r.xml'), '--attest', at("o'ut"), '--each', '--build', 'ci-1'];
  const sh = `cd $0; mkdir -p "o'ut"; echo '${PASSING}' > r.xml; echo a > "o'ut/a"; echo b > "o'ut/b"`;
  const ended = await run(flags, sh);
  t.equal(ended.code, 1);
  const [, rest = ''] = /\nto continue: .* (submit .*)\n/.exec(ended.stderr) ?? [];
  t.equal(rest, `submit '${at("o'\\''ut")}' --each --resume ci-1`);
  const before = created.length;
  const again = await runHere(['submit', at("o'ut"), '--each', '--resume', 'ci-1'], { env });
  t.equal(again.code, 0, again.stderr);
  const keys = created.slice(1).map((item) => 'idempotencyKey' in item && item.idempotencyKey);
  t.equal(new Set(keys).size, 2, 'a file that was submitted has the same key');
  t.equal(created.length, before + 2);
});

t.test('what cannot be attested after the command passed is exit code 1', async (t) => {
  const { at, run, set } = await scene(t, () => serviceError('auth.missing_scope', Code.PermissionDenied));
  const passed = /the command passed, but attesting it was not completed\n$/;
  const flags = ['--junit', at('r.xml'), '--attest', at('out'), ...set];
  for (const [sh, said] of [
    [write(PASSING), /auth\.missing_scope/],
    [write('<html></html>'), /r\.xml, line 1: the root element is <html>/],
    ['mkdir -p $0/out; ln -sf / $0/out/root', /1 file cannot be hashed:\n.*root is a symbolic link/],
  ] as const) {
    const ended = await run(flags, sh);
    t.equal(ended.code, 1, sh);
    t.match(ended.stderr, said);
    t.match(ended.stderr, passed);
    rmSync(at('r.xml'), { force: true });
  }
  const failed = await run(['--junit', at('r.xml')], write(FAILING, 9));
  t.match(failed, { code: 9, stderr: /auth\.missing_scope/ });
  t.notMatch(failed.stderr, passed);
});

t.test('wrong flags are reported before the command runs', async (t) => {
  const { at, dir, env, run } = await scene(t);
  writeFileSync(at('run.set.json'), '');
  const touch = 'touch $0/was-run';
  const junit = ['--junit', at('r.xml')];
  for (const [flags, said] of [
    [[], /there is nothing to attest: give --junit/],
    [[...junit, '--timeout', 'x'], /--timeout/],
    [[...junit, '--set', at('run.set.json')], /run\.set\.json exists/],
    [[...junit, '-o', at('b.json')], /--bundle needs --wait/],
    [[...junit, '--run-url', 'no'], /--run-url is not a URL/],
    [[...junit, '--api-key', 'svc_live_x'], /cut off or mistyped/],
    [[...junit, '--each'], /--each needs --junit.* and --attest/],
    [[...junit, '--attest', at('out'), '--each', '--set', at('x')], /--each makes no set/],
    [[...junit, '--build', ' '], /--build is not 1 to 128/],
    [[...junit, '--git'], /--git: there is no program git/],
  ] as const) {
    t.match(await run(flags, touch, { PATH: dir }), { code: 2, stderr: said }, flags.join(' '));
  }
  t.throws(() => readFileSync(at('was-run')), { code: 'ENOENT' });
  t.match(await runProcess(['run', ...junit], env), {
    code: 2,
    stderr: /missing required argument 'command'/,
  });
});

t.test('neither arguments nor environment of the command are recorded or printed', async (t) => {
  const { at, created, run, env, dir } = await scene(t);
  const secret = 's3cret-value';
  const sh = `: ${secret}; ${write(PASSING)}`;
  const ended = await run(['--junit', at('r.xml'), '--json'], sh, { TOKEN: secret });
  t.notMatch(JSON.stringify([ended, created.map(({ metadata }) => metadata)]), secret);
  t.notMatch(JSON.stringify([ended, created]), env.ATTEST_API_KEY);
  const missing = await runProcess(['run', '--junit', at('r.xml'), '--', '/none/program', secret], env);
  t.match(missing, { code: 127, stderr: 'error: /none/program: command not found\n' });
  await run(['--junit', at('r.xml'), '--record-command'], sh);
  t.same(created.at(-1)?.metadata?.attest_command, {
    program: 'sh',
    arguments: ['-c', sh, dir],
    exitCode: 0,
  });
});

t.test('the command has the environment, without the keys', async (t) => {
  const { at, env, run } = await scene(t);
  const ended = await run(['--junit', at('r.xml')], `env; ${write(PASSING)}`, {
    A: 'b',
    ATTEST_ADMIN_TOKEN: 'token',
    ATTEST_ID_TOKEN_FILE: '/run/secrets/token',
  });
  t.equal(ended.code, 0);
  t.match(ended.stdout, /^A=b$/m);
  t.match(ended.stdout, `ATTEST_URL=${env.ATTEST_URL}\n`);
  t.notMatch(ended.stdout, /ATTEST_(API_KEY|ADMIN_TOKEN|ID_TOKEN)/);
});

t.test('streams are those of the command, and --json after -- is its own', async (t) => {
  const { at, env, run } = await scene(t);
  const flags = ['--junit', at('r.xml'), '--json'];
  const ended = await run(flags, `echo out; echo err >&2; ${write(PASSING)}`);
  t.match(ended, { code: 0, stdout: 'out\n' });
  const [first, line = ''] = ended.stderr.split('\n');
  t.equal(first, 'err');
  t.match(JSON.parse(line), { file: at('r.xml'), submission: { id: 'sub_1' } });
  const echo = await runProcess(['run', '--junit', at('r.xml'), '--', '/bin/echo', '--json', '--help'], env);
  t.match(echo, {
    code: 1,
    stdout: '--json --help\n',
    stderr: /^.*was not written.*\nerror: the command wrote/,
  });
});

t.test('--wait writes the bundle of a run that failed, too', async (t) => {
  const { at, run } = await scene(t);
  const ended = await run(['--junit', at('r.xml'), '--wait', '-o', at('b.json')], write(FAILING, 1));
  t.match(ended, { code: 1, stderr: /sub_1 {2}witnessed .*\nwrote .*b\.json/ });
  t.match(JSON.parse(readFileSync(at('b.json'), 'utf8')), { media_type: '…' });
});
