/** What `attest submit` reports: errors, progress, retries; and the credentials it uses. */
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Code, ConnectError } from '@connectrpc/connect';
import t from 'tap';
import { ErrorDetailSchema } from '../../../gen/attestation/v1/errors_pb.js';
import { mapConcurrent } from '../../../src/cli/audit/source/map-concurrent.js';
import type { Cli } from '../../../src/cli/cli.js';
import { reportRetry } from '../../../src/cli/flags/open-client.js';
import { formatBar, openProgress } from '../../../src/cli/output/progress.js';
import { AttestationError } from '../../../src/client/error.js';
import { runHere } from '../../support/calling/run-cli.js';
import { serviceError } from '../../support/servers/rpc-server.js';
import { files, KEYS, serve } from './submitting.js';

t.test('a rejected key ends the whole command', async (t) => {
  const { requests, env } = await serve(t, () => serviceError('auth.invalid_key', Code.Unauthenticated));
  const { paths } = files(t);
  const { code, stderr } = await runHere(['submit', ...paths, '--concurrency', '1'], { env });
  t.equal(code, 1);
  t.match(
    stderr,
    /^error: .*\(auth\.invalid_key, request req_1\)\nerror: 2 more files failed for the same reason\nstopped: 0 of 3 files were submitted\nto continue: .*\n$/,
  );
  t.equal(requests.length, 1);
  const json = await runHere(['submit', ...paths, '--json'], { env });
  const lines = json.stdout.trim().split('\n');
  t.same(
    lines.map((line) => JSON.parse(line).file),
    paths,
  );
});

t.test('a rate limit that many files are beyond is reported once', async (t) => {
  const spent = serviceError('rate_limit.exceeded', Code.ResourceExhausted);
  const { paths, digests } = files(t);
  const { env, requests } = await serve(t, ({ artifact }) =>
    artifact?.sha256 === digests[0] ? undefined : spent,
  );
  const { code, stdout, stderr } = await runHere(['submit', ...paths], { env });
  t.equal(code, 1);
  t.match(stdout, paths[0]!);
  t.match(
    stderr,
    /^error: .*\(rate_limit\.exceeded, request req_1\)\nerror: 1 more file failed for the same reason\nstopped: 1 of 3 files were submitted\nto continue: .*\n$/,
  );
  t.equal(requests.length, 1);
});

t.test('an unknown schema is rejected with the names of the known ones', async (t) => {
  const unknown = new ConnectError('no such schema', Code.InvalidArgument, undefined, [
    {
      desc: ErrorDetailSchema,
      value: { code: 'submission.unknown_schema', details: { known: ['purl', 'slsa.provenance.v1'] } },
    },
  ]);
  const { env } = await serve(t, () => unknown);
  const { stderr } = await runHere(['submit', files(t).paths[0]!], { env });
  t.match(stderr, 'no such schema (submission.unknown_schema): known names are purl, slsa.provenance.v1\n');
});

t.test('responses of the service cannot control the terminal', async (t) => {
  const hostile = new ConnectError('evil\u001b[2J\u202egood', Code.InvalidArgument, undefined, [
    { desc: ErrorDetailSchema, value: { code: 'submission.unknown_schema\u0007' } },
  ]);
  const { env } = await serve(t, () => hostile);
  const { stderr } = await runHere(['submit', files(t).paths[0]!], { env });
  t.match(stderr, 'evil\uFFFD[2J\uFFFDgood (submission.unknown_schema\uFFFD)');
});

t.test('a terminal shows a progress bar, which is removed at the end', async (t) => {
  const { env } = await serve(t);
  const times = [...Array(1000).keys()].map((second) => new Date(second * 1000));
  const now = () => times.shift()!;
  const { stderr } = await runHere(['submit', ...files(t).paths], { env, terminal: 60, now });
  t.match(stderr, '\r\x1b[Khashing 3 files [');
  t.ok(stderr.endsWith('\r\x1b[K'));
  t.ok(stderr.split('\r').every((line) => line.length < 64));
  t.equal(formatBar('a', 0, 0), `a [${'#'.repeat(24)}] 100%  0 B of 0 B`);
  t.equal(formatBar('a', 1536, 3072), `a [${'#'.repeat(12)}${'.'.repeat(12)}]  50%  1.5 KiB of 3.0 KiB`);
  t.equal(formatBar('a', 2 ** 60, 1), `a [${'#'.repeat(24)}] 100%  1048576.0 TiB of 1 B`);
});

t.test('keys in the data directory of `attest up` are used at its own address only', async (t) => {
  const { baseUrl, requests } = await serve(t);
  const credentials = {
    base_url: baseUrl,
    verify_url: `${baseUrl}/verify`,
    live_key: KEYS.live,
    test_key: KEYS.test,
    admin_token: 'adm_for_a_test_0123456789abcdef0123456789',
  };
  const { dir: dataDir, paths } = files(t, { 'credentials.json': JSON.stringify(credentials) });
  const submit = (...flags: string[]) => runHere(['submit', paths[0]!, '--data-dir', dataDir, ...flags]);
  t.equal((await submit()).code, 0);
  t.equal(requests.at(-1)?.headers.authorization, `Bearer ${KEYS.live}`);
  t.equal((await submit('--environment', 'test')).code, 0);
  t.equal(requests.at(-1)?.headers.authorization, `Bearer ${KEYS.test}`);
  t.equal((await submit('--url', `${baseUrl}/`)).code, 0, 'the same address');
  const elsewhere = await submit('--url', 'http://127.0.0.1:9');
  t.match(elsewhere, { code: 2, stderr: /ATTEST_API_KEY is not set/ });
  const wrong = await submit('--environment', 'live', '--api-key', KEYS.test);
  t.match(wrong, {
    code: 2,
    stderr: 'error: the API key of --api-key is not a key of the live environment\n',
  });
  const mistyped = await submit('--api-key', `${KEYS.test.slice(0, -1)}!`);
  t.match(mistyped, { code: 2, stderr: /--api-key is wrong \(it is cut off or mistyped\)/ });
  t.notMatch(mistyped.stderr, KEYS.test.slice(9, 30));
});

t.test('damaged credentials are reported by their file, without a secret', async (t) => {
  for (const text of [
    '',
    '[]',
    '{"base_url":7}',
    `{"live_key":"${KEYS.live}x"}`,
    `{"base_url":"${KEYS.live}"}`,
  ]) {
    const { dir, paths } = files(t, { 'credentials.json': text });
    const { code, stderr } = await runHere(['submit', paths[0]!, '--data-dir', dir]);
    t.equal(code, 2);
    t.match(stderr, join(dir, 'credentials.json'));
    t.notMatch(stderr, KEYS.live);
  }
});

t.test('a long wait before a retry is reported with its reason; a short one is not', async (t) => {
  const stderr = new PassThrough();
  const cli = { stderr } as unknown as Cli;
  const error = new AttestationError({
    code: 'service.unavailable',
    message: 'the log is frozen',
    requestId: 'req_1',
  });
  reportRetry(cli, error, 4_999);
  reportRetry(cli, error, 60_250);
  const line = 'retrying in 61 s: the log is frozen (service.unavailable, request req_1)\n';
  t.equal(stderr.read().toString(), line);
});

t.test('ordered work keeps its bounds and stops when its reader stops', async (t) => {
  let running = 0;
  let most = 0;
  const begun: number[] = [];
  const work = async (item: number) => {
    begun.push(item);
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    return item * 2;
  };
  const results: number[] = [];
  for await (const result of mapConcurrent([1, 2, 3, 4, 5, 6, 7], 3, work)) results.push(result);
  t.same(results, [2, 4, 6, 8, 10, 12, 14]);
  t.equal(most, 3);
  begun.length = 0;
  for await (const result of mapConcurrent([1, 2, 3, 4, 5, 6, 7], 2, work)) if (result === 2) break;
  t.same(begun, [1, 2]);
  for await (const result of mapConcurrent([], 2, work)) t.fail(String(result));
});

t.test('without a terminal progress is a line every ten seconds', async (t) => {
  const output = new PassThrough({ encoding: 'utf8' });
  let now = 0;
  const progress = openProgress({ output, now: () => now }, 'submitting', 600, String);
  for (now = 1_000; now <= 25_000; now += 1_000) progress.add(20);
  progress.clear();
  output.end();
  t.equal(output.read(), 'submitting: 33%, 200 of 600\nsubmitting: 66%, 400 of 600\n');
});
