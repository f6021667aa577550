/** `attest submit --wait --bundles`: a bundle of each file, as they land, by few calls; against the service. */
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
import { makeFolder } from '../../client/files/folders.js';
import { startApp } from '../../support/app.js';
import { startFaultProxy } from '../../support/breaking/fault-proxy.js';
import { runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { until } from '../../support/until.js';
import { idsOf, startAttest } from './attest-process.js';
import { digest, files } from './submitting.js';

const app = await startApp(t);
const { key } = await newKey(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };

function scene(t: Test) {
  const { dir, paths } = files(t);
  const bundles = join(dir, 'bundles');
  const submit = (...args: string[]) => runHere(['submit', ...args, '--wait', '--bundles', bundles], { env });
  const listed = () => (existsSync(bundles) ? readdirSync(bundles).sort() : []);
  return { dir, paths, bundles, submit, listed };
}

t.test('each file has its bundle, which verifies it', async (t) => {
  const { paths, bundles, submit, listed } = scene(t);
  const { code, stdout, stderr } = await submit(...paths, '--json');
  t.equal(code, 0, stderr);
  t.match(stderr, `wrote 3 bundles to ${bundles}\n`);
  t.same(listed(), ['a b.txt', 'c.txt', 'é.txt'].map((name) => `${name}.bundle.json`).sort());
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  for (const [i, path] of paths.entries()) {
    const { bundle_file: file, submission } = lines[i];
    t.match(submission, { status: 'witnessed', batch_id: /^btc_/, witnessed_at: /Z$/ });
    const verified = await runHere(['verify', path, '--bundle', file, '--verify-url', app.verifyUrl]);
    t.match(verified, { code: 0 }, path);
  }
});

t.test('bundles that exist are kept: those of the build, or else nothing is submitted', async (t) => {
  const { paths, bundles, submit } = scene(t);
  const first = await submit(...paths, '--build', 'one', '--quiet');
  t.equal(first.code, 0, first.stderr);
  const fileOf = (name: string) => join(bundles, `${name}.bundle.json`);
  const again = await submit(...paths, '--build', 'one', '--quiet');
  t.match(again, { code: 0, stdout: first.stdout, stderr: `wrote 0 bundles to ${bundles}, 3 were there\n` });
  const other = await submit(...paths, '--quiet');
  t.match(other, { code: 2, stdout: '', stderr: /a b\.txt\.bundle\.json exists: --force/ });
  const bundle = readFileSync(fileOf('c.txt'), 'utf8');
  writeFileSync(fileOf('c.txt'), bundle.slice(0, -9));
  const damaged = await submit(...paths, '--build', 'one', '--quiet');
  t.match(damaged, {
    code: 1,
    stdout: first.stdout,
    stderr: /c\.txt\.bundle\.json exists and is not the bundle/,
  });
  const forced = await submit(...paths, '--build', 'one', '--quiet', '--force');
  t.match(forced, { code: 0, stdout: first.stdout });
  t.equal(JSON.parse(readFileSync(fileOf('c.txt'), 'utf8')).submission.id, idsOf(first.stdout)[2]);
});

t.test('no name and no link leads out of the folder', async (t) => {
  const { dir, bundles, submit, listed } = scene(t);
  const sums = join(dir, 'SUMS');
  writeFileSync(sums, `${digest('one')}  one\n`);
  t.match(await submit('--checksums', sums), { code: 0, stderr: `wrote 1 bundle to ${bundles}\n` });
  rmSync(bundles, { recursive: true });
  const names = ['../../up', '/etc/passwd', 'a/../../b/../../down', 'x/y', 'n\\nm'];
  writeFileSync(sums, names.map((name, i) => `\\${digest(String(i))}  ${name}\n`).join(''));
  t.match(await submit('--checksums', sums), { code: 0 });
  t.same(listed(), ['down', 'n\nm', 'passwd', 'up'].map((name) => `${name}.bundle.json`).concat('x'));
  mkdirSync(join(dir, 'outside'));
  symlinkSync(join(dir, 'outside'), join(bundles, 'link'));
  writeFileSync(sums, `${digest('l')}  link/z\n${digest('m')}  m\n`);
  const { code, stdout, stderr } = await submit('--checksums', sums);
  t.equal(code, 1);
  t.match(stderr, /error: link\/z: .*link is outside .*bundles, by a symbolic link/);
  t.equal(idsOf(stdout).length, 2, 'both are recorded');
  t.same(readdirSync(join(dir, 'outside')), []);
  t.ok(existsSync(join(bundles, 'm.bundle.json')), 'and the other has its bundle');
  writeFileSync(sums, `${digest('a')}  a\n${digest('b')}  ./a\n`);
  t.match(await submit('--checksums', sums), {
    code: 2,
    stderr: /two files would have the bundle .*a\.bundle/,
  });
  writeFileSync(sums, `${digest('a')}  ${'n'.repeat(250)}\n`);
  t.match(await submit('--checksums', sums), { code: 2, stdout: '', stderr: /is too long for a bundle/ });
  rmSync(bundles, { recursive: true });
  writeFileSync(bundles, 'a file');
  writeFileSync(sums, `${digest('a')}  a\n`);
  t.match(await submit('--checksums', sums), {
    code: 2,
    stdout: '',
    stderr: /bundles cannot be written: EEXIST/,
  });
});

t.test('bundles among the files of a folder are not submitted by the next run', async (t) => {
  for (const inside of ['.', 'proofs']) {
    const dir = t.testdir({ art: { a: 'a', 'b.bundle.json': 'b' } });
    const art = join(dir, 'art');
    const args = ['submit', art, '--each', '--wait', '--quiet', '--build', inside];
    const submit = () => runHere([...args, '--bundles', join(art, inside)], { env });
    const first = await submit();
    t.match(first, { code: 0 });
    t.equal(idsOf(first.stdout).length, inside === '.' ? 1 : 2);
    t.equal((await submit()).stdout, first.stdout);
  }
});

t.test('while a thousand files wait, polls are as many as for one', async (t) => {
  const cwd = t.testdir({ art: {} });
  const paths = Array.from({ length: 1_000 }, (_, i) => `${i}`);
  makeFolder(t, paths, join(cwd, 'art'));
  const proxy = await startFaultProxy(t, app.baseUrl);
  const [witness] = app.witnesses;
  witness?.hold();
  t.teardown(() => witness?.release());
  const args = ['submit', 'art', '--each', '--quiet', '--wait', '--bundles', 'bundles'];
  const { ended } = startAttest(t, args, { cwd, env: { ...env, ATTEST_URL: proxy.url } });
  const polls = () => proxy.requests.filter((request) => /GetAttestation(?:$|\?)/.test(request)).length;
  await until('it polls', () => polls() >= 5);
  const others = proxy.requests.length - polls();
  t.ok(others <= 4, `${others} calls submit them`);
  witness?.release();
  const { code, stdout, stderr } = await ended;
  t.equal(code, 0, stderr);
  t.equal(idsOf(stdout).length, 1_000);
  t.equal(readdirSync(join(cwd, 'bundles/art')).length, 1_000);
  const downloads = proxy.requests.filter((request) => request.includes('DownloadBundle')).length;
  t.equal(downloads, 1_000);
  t.ok(polls() <= 40, `${polls()} polls`);
});

t.test('a wait that takes too long names each file, and its submission is printed', async (t) => {
  const { paths, submit, listed } = scene(t);
  const [witness] = app.witnesses;
  witness?.hold();
  t.teardown(() => witness?.release());
  const { code, stdout, stderr } = await submit(...paths, '--timeout', '1s');
  witness?.release();
  t.equal(code, 1);
  const ids = idsOf(stdout);
  t.equal(ids.length, 3);
  for (const [i, path] of paths.entries()) {
    t.match(stderr, `error: ${path}: ${ids[i]} was not witnessed in time (wait.timeout)`);
  }
  t.match(stderr, /\nwrote 0 bundles to /);
  t.same(listed(), []);
});
