import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Code } from '@connectrpc/connect';
import t from 'tap';
import { SubmissionStatus, ValidationMode } from '../../../gen/attestation/v1/attestations_pb.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { serviceError } from '../../support/servers/rpc-server.js';
import { BUNDLE, digest, files, GONE, serve } from './submitting.js';

const ID = 'sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T';

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

t.test('lookup hashes files locally and lists their submissions', async (t) => {
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

t.test('a rejected file is reported with its violations, and the others are submitted', async (t) => {
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

t.test('progress does not count a file that failed as submitted', async (t) => {
  const { paths, digests } = files(t);
  const { env } = await serve(t, ({ artifact }) =>
    artifact?.sha256 === digests[1]
      ? serviceError('submission.invalid_metadata', Code.InvalidArgument)
      : undefined,
  );
  let at = 0;
  // Each look at the clock is due for a line.
  const now = () => {
    at += 20_000;
    return new Date(at);
  };
  const { stderr } = await runHere(['submit', ...paths], { env, now });
  t.match(stderr, /^submitting: 66%, 2 of 3, 1 failed$/m);
  t.notMatch(stderr, /3 of 3$/m);
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

t.test('a bundle is written to a file or standard output, byte for byte', async (t) => {
  const { env } = await serve(t);
  const output = join(t.testdir(), 'bundle');
  const toFile = await runHere(['bundle', ID, '-o', output], { env });
  t.match(toFile, { code: 0, stdout: '', stderr: `wrote ${output}, ${BUNDLE.length} bytes\n` });
  t.same(new Uint8Array(await readFile(output)), BUNDLE);
  await writeFile(output, 'mine');
  t.match(await runHere(['bundle', ID, '-o', output], { env }), {
    code: 2,
    stderr: /bundle exists, perhaps as the only copy: give another name, or --force\n$/,
  });
  t.equal(await readFile(output, 'utf8'), 'mine');
  t.match(await runHere(['bundle', ID, '-o', output, '--force'], { env }), { code: 0 });
  t.same(new Uint8Array(await readFile(output)), BUNDLE);
  t.match(await runHere(['bundle', ID, '-o', '/dev/null'], { env }), { code: 0 }, 'a device is no file');
  const toOutput = await runHere(['bundle', ID, '--wait'], { env });
  t.equal(toOutput.stdout, new TextDecoder().decode(BUNDLE));
  const other = await runHere(['bundle', ID, '--format', 'tlog-proof'], { env });
  t.equal(other.stdout, 'bundle.tlog-proof');
  const folder = await runHere(['bundle', ID, '-o', dirname(output), '--force'], { env });
  t.match(folder, { code: 2, stderr: /^error: .* cannot be written: EISDIR/ });
  const gone = await runHere(['bundle', GONE, '--json'], { env });
  t.equal(gone.code, 1);
  t.match(JSON.parse(gone.stderr), { error: { code: 'submission.not_found', request_id: 'req_1' } });
});

t.test('a thousand files and more are submitted in a few calls', async (t) => {
  const { created, requests, env } = await serve(t);
  const names = Array.from({ length: 1_100 }, (_, i) => `${i}.txt`);
  const dir = t.testdir(Object.fromEntries(names.map((name) => [name, name])));
  const args = ['submit', ...names.map((name) => join(dir, name)), '--quiet'];
  const { code, stdout, stderr } = await runHere(args, { env });
  t.equal(code, 0);
  t.match(stderr, /^if this run is killed, to continue: attest submit … --resume run-[0-9a-f]{16}\n/);
  t.equal(stdout, names.map((name) => `sub_${digest(name).slice(0, 4)}\n`).join(''));
  t.equal(created.length, names.length);
  t.ok(requests.length < 20, `${requests.length} calls`);
});
