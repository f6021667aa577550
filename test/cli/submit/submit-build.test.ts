/** Builds: a run that ended early is continued by running again, without a second submission, against the service. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { createClient } from '../../../src/client/client.js';
import { makeFolder } from '../../client/files/folders.js';
import { startApp } from '../../support/app.js';
import { startFaultProxy } from '../../support/breaking/fault-proxy.js';
import { PROGRAM, runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { until } from '../../support/until.js';
import { idsOf, runAttest, startAttest } from './attest-process.js';
import { digest, files, serve } from './submitting.js';

const app = await startApp(t);

/** A key of a project of its own, and how many submissions that has. */
async function project(limits = {}) {
  const { key, projectId } = await newKey(app, { limits });
  const count = async () => {
    const [row] =
      await app.pool`select count(*)::int as n from named_submission where project_id = ${projectId}`;
    return Number(row?.n);
  };
  return { env: { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key }, count };
}

t.test(
  'interrupted at a third and run again, it prints the same IDs and submits no file twice',
  async (t) => {
    const paths = Array.from({ length: 180 }, (_, i) => `d${i % 7}/${i}`);
    for (const [signal, exitCode] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const cwd = t.testdir({ art: {} });
      makeFolder(t, paths, join(cwd, 'art'));
      const { env, count } = await project({ perSecond: 60 });
      const proxy = await startFaultProxy(t, app.baseUrl);
      // Of the first call 60 pass, or the more of a second window. The next one is not answered.
      let calls = 0;
      const isSecond = ({ url }: { url?: string }) => url?.includes('BatchCreate') === true && ++calls === 2;
      void proxy.breakNext(isSecond, () => {});
      const args = ['submit', 'art', '--each', '--wait', '--bundles', 'bundles'];
      const flags = signal === 'SIGINT' ? ['--build', 'ci 4711'] : [];
      const held = { ...env, ATTEST_URL: proxy.url };
      const { child, ended, lines, said } = startAttest(t, [...args, ...flags], { cwd, env: held });
      await until('a third is done', () => lines() >= 60).catch((error: Error) => {
        throw new Error(`${error.message}: ${lines()} lines, and ${said()}`);
      });
      t.ok(existsSync(join(cwd, 'bundles/art/d0/0.bundle.json')), 'bundles are written as they land');
      child.kill(signal);
      const first = await ended;
      t.equal(first.code, exitCode);
      const before = idsOf(first.stdout);
      t.ok(before.length >= 60 && before.length < 180, `${before.length} printed`);
      t.match(first.stderr, new RegExp(`\ninterrupted: ${before.length} of 180 files were submitted\n`));
      const [, again = ''] = /\nto continue: .* submit … (--.*)\n$/.exec(first.stderr) ?? [];
      t.match(again, signal === 'SIGINT' ? /^--build 'ci 4711'$/ : /^--resume run-[0-9a-f]{16}$/);
      const [flag = '', id = ''] = again.replaceAll("'", '').split(/ (.*)/);
      const second = await runAttest(t, [...args, flag, id], { cwd, env });
      t.equal(second.code, 0, second.stderr);
      t.match(second.stderr, /wrote \d+ bundles to bundles, \d+ were there\n$/);
      const all = idsOf(second.stdout);
      t.same([all.length, new Set(all).size], [180, 180]);
      t.same(all.slice(0, before.length), before);
      t.equal(await count(), 180);
    }
  },
);

t.test(
  'a file whose content changed is a new submission of the build, the others are the same',
  async (t) => {
    const { env, count } = await project();
    const { paths, dir } = files(t);
    const submit = (build: string) => runHere(['submit', ...paths, '--quiet', '--build', build], { env });
    const [a = '', b = '', c = ''] = idsOf((await submit('1')).stdout);
    writeFileSync(join(dir, 'é.txt'), 'other');
    const [a2, b2, c2] = idsOf((await submit('1')).stdout);
    t.same([a2, c2], [a, c]);
    t.not(b2, b);
    t.equal(await count(), 4);
    const other = idsOf((await submit('2')).stdout);
    t.equal(new Set([a, b, c, b2, ...other]).size, 7, 'another build has submissions of its own');
  },
);

t.test('keys follow from build, path and digest as the help says', async (t) => {
  const { env, created } = await serve(t);
  const { paths, digests } = files(t);
  await runHere(['submit', ...paths, '--build', 'b"1'], { env });
  const names = ['a b.txt', 'é.txt', 'c.txt'];
  const keyOf = (name: string, i: number) => digest(`["attest submit","b\\"1","${name}","${digests[i]}"]`);
  t.same(
    created.map(({ idempotencyKey }) => idempotencyKey),
    names.map(keyOf),
  );
  created.length = 0;
  await runHere(['submit', ...paths], { env });
  await runHere(['submit', ...paths], { env });
  t.equal(new Set(created.map(({ idempotencyKey }) => idempotencyKey)).size, 6, 'random without a build');
});

t.test('the service finds the submissions of a build, also when it has forgotten their keys', async (t) => {
  const { env, count } = await project();
  const { paths, dir } = files(t);
  const twin = join(dir, 'twin');
  writeFileSync(twin, 'first');
  const metadata = ['--schema', 'purl', '--metadata', '{"purl": "pkg:npm/a@1"}'];
  const submit = (...flags: string[]) =>
    runHere(['submit', ...paths, twin, '--quiet', '--build', 'b', ...flags], { env });
  const first = await submit(...metadata);
  const ids = idsOf(first.stdout);
  t.equal(new Set(ids).size, 4, 'files that are alike have one each');
  const client = createClient({ baseUrl: env.ATTEST_URL, apiKey: env.ATTEST_API_KEY });
  const { data } = await client.attestations.list({ build: 'b' });
  t.same(data.map(({ id }) => id).sort(), [...ids].sort());
  await app.pool`delete from idempotency_key`;
  t.equal((await submit(...metadata)).stdout, first.stdout);
  t.equal(await count(), 4);
  const set = await runHere(['submit', dir, '--set', `${dir}.json`, '--build', 'b', '--quiet'], { env });
  await app.pool`delete from idempotency_key`;
  const again = await runHere(['submit', dir, '--set', `${dir}.json`, '--build', 'b', '--quiet'], { env });
  t.equal(again.stdout, set.stdout);
  t.equal(await count(), 5);
});

t.test('a key that may only submit continues a build by idempotency keys', async (t) => {
  const { key } = await newKey(app, { scopes: ['attestations:write'] });
  const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };
  const { paths } = files(t);
  const args = ['submit', ...paths, '--quiet', '--build', 'b'];
  const first = await runHere(args, { env });
  t.match(first, { code: 0, stderr: '' });
  t.equal((await runHere(args, { env })).stdout, first.stdout);
});

/** A folder, and `attest submit` that makes its set. */
async function folderScene(t: Test) {
  const { env, count } = await project();
  const dir = t.testdir({ art: { a: 'a', b: 'b', c: 'c' } });
  const at = (name: string) => join(dir, name);
  const args = ['submit', at('art'), '--set', at('s.json'), '--verify-url', app.verifyUrl];
  const submit = (...flags: string[]) => runHere([...args, ...flags], { env });
  const hashOf = (name: string) =>
    createHash('sha256')
      .update(readFileSync(at(name)))
      .digest('hex');
  return { at, submit, count, hashOf };
}

t.test('a set of the same build is the same set while its files are unchanged', async (t) => {
  const { at, submit, count, hashOf } = await folderScene(t);
  const flags = ['--build', 'b', '--quiet', '--wait', '--bundle', at('b.json')];
  const first = await submit(...flags, '--not-before');
  t.equal(first.code, 0, first.stderr);
  const set = hashOf('s.json');
  const again = await submit(...flags, '--not-before');
  t.same([again.code, again.stdout, hashOf('s.json')], [0, first.stdout, set]);
  t.equal(await count(), 1);
  writeFileSync(at('art/b'), 'changed');
  const changed = await submit(...flags, '--not-before');
  t.match(changed, { code: 2, stdout: '', stderr: /s\.json is another set: .*--force/ });
  t.equal(hashOf('s.json'), set, 'the set before is still there');
  writeFileSync(at('art/b'), 'b');
  t.match(await submit(...flags), { code: 2, stderr: /s\.json is another set/ }, 'without its checkpoint');
  t.match(await submit('--build', 'b', '--quiet', '--not-before', '--force'), { code: 0, stdout: /^sub_/ });
  t.not(hashOf('s.json'), set);
  t.equal(await count(), 2);
});

t.test('a set file that is cut off or none is not overwritten by running again', async (t) => {
  const { at, submit, count } = await folderScene(t);
  t.match(await submit('--build', 'b'), { code: 0 });
  const whole = readFileSync(at('s.json'), 'utf8');
  for (const text of ['', 'x', whole.slice(0, -5), `${whole}x`]) {
    writeFileSync(at('s.json'), text);
    t.match(await submit('--build', 'b'), { code: 2, stderr: /s\.json is no set file \(.*--force/ }, text);
    t.equal(readFileSync(at('s.json'), 'utf8'), text);
  }
  t.equal(await count(), 1);
});

t.test('a bundle of another submission is not overwritten by running again', async (t) => {
  const { at, submit } = await folderScene(t);
  writeFileSync(at('b.json'), 'mine');
  const flags = ['--build', 'b', '--wait', '--bundle', at('b.json')];
  const failed = await submit(...flags);
  t.match(failed, { code: 2, stdout: /^sub_/, stderr: /b\.json exists and is not the bundle of sub_/ });
  t.equal(readFileSync(at('b.json'), 'utf8'), 'mine');
  t.match(await submit(...flags, '--force'), { code: 0, stderr: /wrote .*b\.json/ });
});

t.test(
  'a bundle that was cut off for lack of space is not left, so that the same command goes on',
  async (t) => {
    const { env } = await project();
    const dir = t.testdir({ art: { a: 'a' } });
    const flags = ['--build', 'full', '--set', 's.json', '--wait', '--bundle', 'b.json'];
    const limited = `trap '' XFSZ; ulimit -f 6; exec "$@"`;
    const command = [process.execPath, ...PROGRAM, 'submit', 'art', ...flags];
    const options = { cwd: dir, env: { PATH: process.env.PATH, ...env } };
    await t.rejects(promisify(execFile)('sh', ['-c', limited, 'sh', ...command], options), {
      code: 2,
      stderr: /b\.json cannot be written: EFBIG/,
    });
    t.same(readdirSync(dir).sort(), ['art', 's.json']);
    t.match(await runAttest(t, ['submit', 'art', ...flags], { cwd: dir, env }), { code: 0 });
    t.same(readdirSync(dir).sort(), ['art', 'b.json', 's.json']);
  },
);
