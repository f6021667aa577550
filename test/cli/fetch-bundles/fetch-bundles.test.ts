/** `attest bundle` with many IDs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Code } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import { AttestationService, SubmissionStatus } from '../../../gen/attestation/v1/attestations_pb.js';
import { createClient } from '../../../src/client/client.js';
import { makeFolder, presentOf } from '../../client/files/folders.js';
import { startApp } from '../../support/app.js';
import { PROGRAM, runHere } from '../../support/calling/run-cli.js';
import { newKey } from '../../support/calling/test-keys.js';
import { serveRpc, serviceError } from '../../support/servers/rpc-server.js';
import { until } from '../../support/until.js';
import { runAttest } from '../submit/attest-process.js';
import { KEYS } from '../submit/submitting.js';

const app = await startApp(t);
const { key } = await newKey(app);
const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: key };
const { attestations } = createClient({ baseUrl: app.baseUrl, apiKey: key });

/** Submits files whose content is their path; the ids in their order. */
async function submit(paths: readonly string[], build: string): Promise<string[]> {
  const metadata = { schema: 'purl', purl: 'pkg:generic/x' };
  const items = paths.map((path) => ({ artifact: { sha256: presentOf(path).sha256 }, metadata, build }));
  const ids: string[] = [];
  for await (const { submission } of attestations.submitMany(items)) ids.push(submission?.id ?? '');
  return ids;
}

t.test('the bundles of a build are written once they are witnessed, and verify its folder', async (t) => {
  const dir = t.testdir({ art: {} });
  const at = (name: string) => join(dir, name);
  const paths = Array.from({ length: 25 }, (_, i) => `d${i % 3}/f${i}`);
  makeFolder(t, paths, at('art'));
  const ids = await submit(paths, 'ci-1');
  await submit(['other'], 'ci-2');
  const waiting = runHere(['bundle', '--build', 'ci-1', '--wait', '--bundles', at('proofs')], { env });
  await app.drain();
  const { code, stdout, stderr } = await waiting;
  t.match(
    { code, stdout, stderr },
    { code: 0, stdout: '', stderr: /^wrote 25 bundles to .*, 0 were there, 0 are not\n$/ },
  );
  t.strictSame(readdirSync(at('proofs')).sort(), ids.map((id) => `${id}.bundle.json`).sort());
  const [id = ''] = ids;
  const one = await runHere(['bundle', id], { env });
  t.equal(readFileSync(at(`proofs/${id}.bundle.json`), 'utf8'), one.stdout, 'the bytes of one bundle');
  const verify = ['verify', at('art'), '--bundles', at('proofs'), '--verify-url', app.verifyUrl];
  t.match(await runHere(verify, { env }), { code: 0, stdout: /^Files: 25 ok, .*; 25 bundles\n/ });
  writeFileSync(at('art/d1/f1'), 'altered');
  rmSync(at('art/d2/f2'));
  const altered = await runHere([...verify, '--json'], { env });
  t.match(
    [altered.code, JSON.parse(altered.stdout)],
    [1, { files: { ok: 23, missing: 2, extra: 1, paths: { extra: ['d1/f1'] } } }],
  );
});

t.test('what is there is kept, and another file in its place is an error', async (t) => {
  const dir = t.testdir({ ids: '' });
  const at = (name: string) => join(dir, name);
  const ids = await submit(['a', 'b', 'c'], 'ci-3');
  await app.drain();
  writeFileSync(at('ids'), `${ids.join('\r\n')}\n\n${ids[0]}\n`);
  const args = ['bundle', '--ids-from', at('ids'), '--bundles', at('proofs')];
  t.match(await runHere([...args, '--json'], { env }), { code: 0, stderr: /^wrote 3 bundles/ });
  rmSync(at(`proofs/${ids[1]}.bundle.json`));
  const again = await runHere([...args, '--json'], { env });
  const lines = again.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const kept = ids.map((id) => lines.find((line) => line.id === id)?.is_kept);
  t.strictSame(kept, [true, false, true]);
  t.match(again.stderr, /^wrote 1 bundle to .*, 2 were there, 0 are not\n$/);
  const bundle = readFileSync(at(`proofs/${ids[1]}.bundle.json`), 'utf8');
  for (const other of ['mine', '', readFileSync(at(`proofs/${ids[0]}.bundle.json`), 'utf8')]) {
    writeFileSync(at(`proofs/${ids[1]}.bundle.json`), other);
    const found = await runHere(args, { env });
    t.match(found, {
      code: 1,
      stderr: new RegExp(`error: ${ids[1]}: .* exists and is not the bundle of ${ids[1]}`),
    });
    t.equal(readFileSync(at(`proofs/${ids[1]}.bundle.json`), 'utf8'), other, 'it is left as it is');
  }
  t.match(await runHere([...args, '--force'], { env }), { code: 0, stderr: /^wrote 1 bundle/ });
  t.equal(readFileSync(at(`proofs/${ids[1]}.bundle.json`), 'utf8'), bundle);
  t.strictSame(readdirSync(at('proofs')).length, 3, 'no temporary file is left');
});

t.test('IDs come by standard input', async (t) => {
  const dir = t.testdir();
  const ids = await submit(['x', 'y'], 'ci-6');
  await app.drain();
  const args = ['bundle', '--ids-from', '-', '--bundles', 'proofs'];
  const ended = await runAttest(t, args, { cwd: dir, env, input: ids.join('\n') });
  t.match(ended, { code: 0, stderr: 'wrote 2 bundles to proofs, 0 were there, 0 are not\n' });
});

t.test('a submission that is not there does not keep the others from being written', async (t) => {
  const dir = t.testdir();
  const [id = ''] = await submit(['a'], 'ci-4');
  await app.drain();
  const gone = `${id.slice(0, -4)}ZZZZ`;
  const args = ['bundle', gone, id, '--wait', '--timeout', '10s', '--bundles', join(dir, 'proofs')];
  const { code, stderr, stdout } = await runHere([...args, '--json'], { env });
  t.match({ code, stderr }, { code: 1, stderr: /^wrote 1 bundle to .*, 0 were there, 1 are not\n$/ });
  t.match(stdout, `{"id":"${gone}","error":{"code":"submission.not_found"`);
  t.match(await runHere(['bundle', '--build', 'none', '--bundles', dir], { env }), {
    code: 1,
    stderr: 'error: the project has no submissions of the build none\n',
  });
});

const idAt = (i: number) => `sub_01JX5WQ3${String(i).padStart(18, '0')}`;

/** A service whose submissions are all in one batch, which lands after so many looks at one of them; it may hold downloads. */
async function serveBatch(
  t: Test,
  {
    lands,
    status = SubmissionStatus.WITNESSED,
    isHeld = false,
    archived,
  }: { lands: number; status?: SubmissionStatus; isHeld?: boolean; archived?: string },
) {
  const count = { gets: 0, downloads: 0 };
  const batch = { id: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ', firstIndex: 0n, treeSize: 1_000n };
  const { baseUrl } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      getAttestation: ({ id }) => {
        const hasLanded = ++count.gets >= lands;
        if (id === archived) throw serviceError('submission.archived', Code.NotFound);
        const logIndex = BigInt(id.slice(-6));
        return {
          id,
          logIndex,
          status: hasLanded ? status : SubmissionStatus.QUEUED,
          ...(hasLanded && { bundle: { batch } }),
        };
      },
      downloadBundle: async ({ id }) => {
        if (count.gets < lands) throw serviceError('bundle.not_ready', Code.NotFound);
        count.downloads++;
        if (isHeld && count.downloads > 20) await new Promise(() => {});
        return {
          data: new TextEncoder().encode(JSON.stringify({ batch: { id: batch.id }, submission: { id } })),
        };
      },
    });
  });
  return { count, env: { ATTEST_URL: baseUrl, ATTEST_API_KEY: KEYS.test } };
}

t.test('the number of polls does not grow with that of the IDs', async (t) => {
  const dir = t.testdir({ ids: Array.from({ length: 400 }, (_, i) => `${idAt(i)}\n`).join('') });
  const { count, env } = await serveBatch(t, { lands: 4 });
  const args = ['bundle', '--ids-from', join(dir, 'ids'), '--wait', '--bundles', join(dir, 'proofs')];
  t.match(await runHere(args, { env }), { code: 0, stderr: /wrote 400 bundles/ });
  t.match(count, { downloads: 400 });
  t.ok(count.gets <= 6, `${count.gets} looks`);
});

t.test('a batch that its witnesses left is an error of --wait, for each of its submissions', async (t) => {
  const dir = t.testdir();
  const { env } = await serveBatch(t, { lands: 1, status: SubmissionStatus.PARTIAL });
  const args = ['bundle', idAt(1), idAt(2), '--bundles', join(dir, 'proofs')];
  const { code, stderr } = await runHere([...args, '--wait'], { env });
  t.equal(code, 1);
  for (const i of [1, 2])
    t.match(stderr, `error: ${idAt(i)}: ${idAt(i)} is not witnessed: its witnesses' deadline has passed`);
  t.match(
    await runHere(args, { env }),
    { code: 0, stderr: /wrote 2 bundles/ },
    'without --wait it is written',
  );
});

t.test('the error of a submission is not that of the others in its batch', async (t) => {
  const dir = t.testdir();
  const { env } = await serveBatch(t, { lands: 1, archived: idAt(1) });
  const ids = [1, 2, 3].map(idAt);
  const { code, stderr } = await runHere(
    ['bundle', ...ids, '--wait', '--concurrency', '1', '--bundles', dir],
    {
      env,
    },
  );
  t.match([code, stderr], [1, /wrote 2 bundles/]);
  t.match(stderr, `error: ${idAt(1)}: `);
});

t.test('an interrupt ends it within a second, and the same command continues', async (t) => {
  const dir = t.testdir({ ids: Array.from({ length: 60 }, (_, i) => `${idAt(i)}\n`).join('') });
  const { count, env } = await serveBatch(t, { lands: 0, isHeld: true });
  const args = ['bundle', '--ids-from', join(dir, 'ids'), '--bundles', join(dir, 'proofs')];
  const child = spawn(process.execPath, [...PROGRAM, ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    said += piece;
  });
  await until('downloads are held', () => count.downloads > 25);
  const ended = once(child, 'close');
  child.kill('SIGINT');
  const [code] = await ended;
  t.equal(code, 130);
  t.match(
    said,
    /stopping after the bundles under way[\s\S]*wrote 20 bundles to .*, 0 were there, 40 are not: the same command continues\n$/,
  );
  t.equal(readdirSync(join(dir, 'proofs')).length, 20, 'whole bundles, and nothing else');
});

t.test('IDs and flags that are wrong are named before any call', async (t) => {
  const dir = t.testdir({ ids: `${idAt(1)}\nsub_x\n`, empty: '\n\n', file: '' });
  const at = (name: string) => join(dir, name);
  mkdirSync(at('proofs'));
  const into = ['--bundles', at('proofs')];
  const cases: [args: string[], message: RegExp][] = [
    [[], /missing required argument 'id', and neither --build nor --ids-from/],
    [[idAt(1), idAt(2)], /several IDs, .* need --bundles <dir>/],
    [['--build', 'x'], /--build need --bundles <dir>/],
    [['--build', '', ...into], /--build is not 1 to 128 characters/],
    [['nonsense', ...into], /nonsense is not a submission ID/],
    [['../../x', ...into], /is not a submission ID/],
    [['--ids-from', at('ids'), ...into], /ids: line 2 is not a submission ID/],
    [['--ids-from', at('empty'), ...into], /empty has no submission IDs/],
    [['--ids-from', at('none'), ...into], /none cannot be read: ENOENT/],
    [[idAt(1), ...into, '-o', 'x'], /--bundles goes with no --output/],
    [[idAt(1), ...into, '--format', 'cose'], /with no --format but json/],
    [[idAt(1), ...into, '--concurrency', '0'], /--concurrency is not a whole number from 1 to 64/],
    [[idAt(1), ...into, '--timeout', 'x'], /--timeout is not/],
  ];
  for (const [args, message] of cases) {
    t.match(
      await runHere(['bundle', ...args], { env }),
      { code: 2, stdout: '', stderr: message },
      args.join(' '),
    );
  }
  const unwritable = await runHere(['bundle', (await submit(['a'], 'ci-5'))[0]!, '--bundles', at('file')], {
    env,
  });
  t.match(unwritable, { code: 2, stdout: '', stderr: /cannot be written: / });
});
