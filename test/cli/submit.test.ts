import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { JsonObject } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import {
  AttestationService,
  type BatchItem,
  type ListAttestationsRequest,
  SubmissionStatus,
  ValidationMode,
} from '../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { ErrorDetailSchema } from '../../gen/attestation/v1/errors_pb.js';
import { mapConcurrent } from '../../src/cli/audit/map-concurrent.js';
import type { Cli } from '../../src/cli/cli.js';
import { reportRetry } from '../../src/cli/flags/client-flags.js';
import { formatBar } from '../../src/cli/output/progress.js';
import { AttestationError } from '../../src/client/error.js';
import { createApiKey } from '../../src/server/keys/api-key.js';
import { runHere, runProcess } from '../support/calling/run-cli.js';
import { serveRpc, serviceError } from '../support/servers/rpc-server.js';

const KEYS = {
  live: createApiKey(Environment.LIVE, randomBytes),
  test: createApiKey(Environment.TEST, randomBytes),
};
const BUNDLE = new TextEncoder().encode('{"media_type":"…"}');

/** A service that numbers submissions and has them witnessed at the second look; `refuse` may refuse one. */
async function serve(t: Test, refuse: (request: BatchItem) => ConnectError | undefined = () => undefined) {
  const created: BatchItem[] = [];
  const lists: ListAttestationsRequest[] = [];
  const looks = new Map<string, number>();
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      batchCreateAttestations: ({ items }) => ({
        results: items.map((item) => {
          const error = refuse(item);
          if (error !== undefined) return resultOf(error);
          created.push(item);
          const { artifact, metadata } = item;
          const id = `sub_${artifact?.sha256.slice(0, 4)}`;
          return { submission: { id, status: SubmissionStatus.QUEUED, artifact, metadata } };
        }),
      }),
      getAttestation: ({ id }) => {
        const look = (looks.get(id) ?? 0) + 1;
        looks.set(id, look);
        return { id, status: look < 2 ? SubmissionStatus.QUEUED : SubmissionStatus.WITNESSED };
      },
      listAttestations: (request) => {
        lists.push(request);
        const sha256 = request.artifactSha256;
        const { length } = created.filter(({ artifact }) => artifact?.sha256 === sha256);
        // The first page is cut short, as one is that has looked at very many submissions.
        if (request.cursor === '') return { data: [], nextCursor: 'cur_next' };
        const data = Array.from({ length }, (_, i) => ({
          id: `sub_${sha256.slice(0, 4)}_${length - i}`,
          status: SubmissionStatus.WITNESSED,
          submittedAt: timestampFromMs(1_760_000_000_123),
          artifact: { sha256 },
          metadata: { schema: 'purl' },
        }));
        return { data, nextCursor: '' };
      },
      downloadBundle: ({ id, format }) => {
        if (id === 'sub_gone') throw serviceError('submission.not_found', Code.NotFound);
        return { data: format === 'bundle.json' ? BUNDLE : new TextEncoder().encode(format) };
      },
    });
  });
  return { created, lists, requests, env: { ATTEST_URL: baseUrl, ATTEST_API_KEY: KEYS.test }, baseUrl };
}

/** An error as the result of an item; throws it unless it is one of a submission. */
function resultOf(error: ConnectError) {
  const [detail] = error.details as unknown as [
    { value: { code: string; details?: JsonObject; requestId?: string } },
  ];
  if (!detail.value.code.startsWith('submission.')) throw error;
  return { error: { ...detail.value, message: error.rawMessage } };
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex');

/** Three files and their submissions' ids, in order; and beside them what else the folder should hold. */
function files(t: Test, more: Record<string, string | object> = {}) {
  const contents = ['first', 'second', 'third'];
  const dir = t.testdir({ 'a b.txt': contents[0]!, 'é.txt': contents[1]!, 'c.txt': contents[2]!, ...more });
  const paths = ['a b.txt', 'é.txt', 'c.txt'].map((name) => join(dir, name));
  return {
    dir,
    paths,
    digests: contents.map(digest),
    ids: contents.map((text) => `sub_${digest(text).slice(0, 4)}`),
  };
}

t.test('files are hashed locally, submitted and reported in order', async (t) => {
  const { created, env } = await serve(t);
  const { paths, digests, ids } = files(t);
  const { code, stdout, stderr } = await runHere(['submit', ...paths, '--concurrency', '3'], { env });
  t.match({ code, stderr }, { code: 0, stderr: '' });
  t.equal(stdout, paths.map((path, i) => `${ids[i]}  queued  ${path}\n`).join(''));
  t.same(created.map(({ artifact }) => artifact?.sha256).sort(), [...digests].sort());
  t.ok(created.every(({ validation }) => validation === ValidationMode.STRICT));
  t.same(created.find(({ artifact }) => artifact?.sha256 === digests[0])?.metadata, {
    schema: 'purl',
    purl: `pkg:generic/a%20b.txt?checksum=sha256%3A${digests[0]}`,
  });
});

t.test('lookup hashes files here and lists what was submitted of them', async (t) => {
  const { lists, env } = await serve(t);
  const { paths, digests, ids } = files(t);
  await runHere(['submit', paths[0]!, paths[0]!, paths[1]!], { env });
  const line = (id: string, path: string) => `${id}  2025-10-09T08:53:20.123Z  witnessed  purl  ${path}\n`;
  const [twice, once] = [
    line(`${ids[0]}_2`, paths[0]!) + line(`${ids[0]}_1`, paths[0]!),
    line(`${ids[1]}_1`, paths[1]!),
  ];
  const both = await runHere(['lookup', paths[0]!, paths[1]!], { env });
  t.same(both, { code: 0, stdout: twice + once, stderr: '' });
  const missing = await runHere(['lookup', paths[2]!, `sha256:${digests[1]!.toUpperCase()}`], { env });
  t.match(missing, { code: 1, stderr: `no submission of ${paths[2]} (sha256:${digests[2]})\n` });
  t.match(missing.stdout, `${ids[1]}_1`, 'the others are listed all the same');
  const typed = await runHere(['lookup', '-'], { env, typed: 'first' });
  t.equal(typed.stdout, twice.replaceAll(paths[0]!, '-'));
  const cut = await runHere(
    ['lookup', paths[0]!, '--limit', '1', '--schema', 'purl', '--status', 'witnessed'],
    {
      env,
    },
  );
  t.match(cut, {
    code: 0,
    stdout: line(`${ids[0]}_2`, paths[0]!),
    stderr: /has older submissions as well: --limit/,
  });
  const filters = { artifactSha256: digests[0], schema: 'purl', status: SubmissionStatus.WITNESSED };
  t.match(lists.at(-1), { ...filters, limit: 2, cursor: 'cur_next' });
  const json = await runHere(['lookup', paths[0]!, paths[2]!, '--json'], { env });
  const [found, none] = json.stdout
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));
  t.match(found, { file: paths[0], artifact_sha256: digests[0], has_more: false });
  t.match(found.submissions, [{ id: `${ids[0]}_2`, status: 'witnessed' }, { id: `${ids[0]}_1` }]);
  t.match(none, { file: paths[2], submissions: [] });
  for (const [args, message] of [
    [['-', '-'], /- can be given only once/],
    [[paths[0]!, '--limit', '0'], /--limit is not a whole number from 1 to 10000/],
    [[paths[0]!, '--status', 'sealed'], /Allowed choices are queued, witnessed, partial, failed/],
    [['sha256:12'], /sha256: is not followed by 64 hex digits/],
    [[`${paths[0]}.gone`], /cannot be read: ENOENT/],
  ] as const) {
    t.match(await runHere(['lookup', ...args], { env }), { code: 2, stderr: message });
  }
});

t.test('metadata comes from the command or a file, the schema from either', async (t) => {
  const { created, env } = await serve(t);
  const file = join(t.testdir({ f: 'f', 'm.json': '{"purl":"pkg:npm/a"}' }), 'f');
  const metadata = join(file, '..', 'm.json');
  const commands = [
    ['--schema', 'purl', '--metadata', '{"purl":"pkg:npm/a"}'],
    ['--metadata', '{"purl":"pkg:npm/a","schema":"purl"}'],
    ['--schema', 'purl', '--metadata', `@${metadata}`],
  ];
  for (const flags of commands) t.equal((await runHere(['submit', file, ...flags], { env })).code, 0);
  for (const { metadata } of created) t.same(metadata, { schema: 'purl', purl: 'pkg:npm/a' });
  const lenient = await runHere(['submit', file, '--lenient'], { env });
  t.equal(lenient.code, 0);
  t.equal(created.at(-1)?.validation, ValidationMode.LENIENT);
});

t.test('--json prints the submission as REST JSON, --quiet its id', async (t) => {
  const { env } = await serve(t);
  const { paths, digests, ids } = files(t);
  const json = await runProcess(['submit', paths[0]!, '--json'], env);
  t.equal(json.code, 0);
  t.match(JSON.parse(json.stdout), {
    file: paths[0],
    submission: { id: ids[0], status: 'queued', artifact: { sha256: digests[0] }, warnings: [] },
  });
  const quiet = await runHere(['submit', ...paths, '--quiet'], { env });
  t.equal(quiet.stdout, ids.map((id) => `${id}\n`).join(''));
});

t.test('--wait returns when the submission is witnessed', async (t) => {
  const { env } = await serve(t);
  const { paths, ids } = files(t);
  const { code, stdout } = await runHere(['submit', paths[0]!, '--wait'], { env });
  t.equal(code, 0);
  t.equal(stdout, `${ids[0]}  witnessed  ${paths[0]}\n`);
});

t.test('a rejected file is reported with the failing places, and the others go on', async (t) => {
  const { paths, digests, ids } = files(t);
  const { env } = await serve(t, ({ artifact }) =>
    artifact?.sha256 === digests[1]
      ? serviceError('submission.invalid_metadata', Code.InvalidArgument)
      : undefined,
  );
  const { code, stdout, stderr } = await runHere(['submit', ...paths], { env });
  t.equal(code, 1);
  t.equal(stdout, `${ids[0]}  queued  ${paths[0]}\n${ids[2]}  queued  ${paths[2]}\n`);
  t.equal(
    stderr,
    `error: ${paths[1]}: because of submission.invalid_metadata (submission.invalid_metadata, request req_1)\n`,
  );
});

t.test('a rejected key ends the whole command', async (t) => {
  const { requests, env } = await serve(t, () => serviceError('auth.invalid_key', Code.Unauthenticated));
  const { paths } = files(t);
  const { code, stderr } = await runHere(['submit', ...paths, '--concurrency', '1'], { env });
  t.equal(code, 1);
  t.match(
    stderr,
    /^error: .*\(auth\.invalid_key, request req_1\)\nerror: 2 more files failed for the same reason\n$/,
  );
  t.equal(requests.length, 1);
  const json = await runHere(['submit', ...paths, '--json'], { env });
  const lines = json.stdout.trim().split('\n');
  t.same(
    lines.map((line) => JSON.parse(line).file),
    paths,
  );
});

t.test('nothing is submitted when one of the files cannot be', async (t) => {
  const { requests, env } = await serve(t);
  const { dir, paths } = files(t);
  for (const bad of [join(dir, 'gone'), dir]) {
    const { code, stderr } = await runHere(['submit', paths[0]!, bad], { env });
    t.equal(code, 2);
    t.match(stderr, /cannot be read: ENOENT|is a directory/);
  }
  t.equal(requests.length, 0);
});

t.test('an unknown schema is rejected with the names of those that are known', async (t) => {
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

t.test('a bundle is written to a file or standard output, byte for byte', async (t) => {
  const { env } = await serve(t);
  const output = join(t.testdir(), 'bundle');
  const toFile = await runHere(['bundle', 'sub_1', '-o', output], { env });
  t.match(toFile, { code: 0, stdout: '', stderr: `wrote ${output}, ${BUNDLE.length} bytes\n` });
  t.same(new Uint8Array(await readFile(output)), BUNDLE);
  const toOutput = await runHere(['bundle', 'sub_1', '--wait'], { env });
  t.equal(toOutput.stdout, new TextDecoder().decode(BUNDLE));
  const other = await runHere(['bundle', 'sub_1', '--format', 'tlog-proof'], { env });
  t.equal(other.stdout, 'bundle.tlog-proof');
  const folder = await runHere(['bundle', 'sub_1', '-o', dirname(output)], { env });
  t.match(folder, { code: 2, stderr: /^error: .* cannot be written: EISDIR/ });
  const gone = await runHere(['bundle', 'sub_gone', '--json'], { env });
  t.equal(gone.code, 1);
  t.match(JSON.parse(gone.stderr), { error: { code: 'submission.not_found', request_id: 'req_1' } });
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
  t.match(wrong, { code: 2, stderr: 'error: the API key is not a key of the live environment\n' });
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

t.test('ordered work keeps its bounds and stops when nobody reads on', async (t) => {
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

t.test('a thousand files and more are submitted in a few calls', async (t) => {
  const { created, requests, env } = await serve(t);
  const names = Array.from({ length: 1_100 }, (_, i) => `${i}.txt`);
  const dir = t.testdir(Object.fromEntries(names.map((name) => [name, name])));
  const args = ['submit', ...names.map((name) => join(dir, name)), '--quiet'];
  const { code, stdout } = await runHere(args, { env });
  t.equal(code, 0);
  t.equal(stdout, names.map((name) => `sub_${digest(name).slice(0, 4)}\n`).join(''));
  t.equal(created.length, names.length);
  t.ok(requests.length < 20, `${requests.length} calls`);
});
