/** `attest log archive`: what it writes verifies offline, and is written once. */
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { create, makeSource, ORIGIN } from '../../../support/archives/archived-log.js';
import { MAY_MOUNT, mountSmallDisk } from '../../../support/breaking/small-disk.js';
import { runHere } from '../../../support/calling/run-cli.js';

const source = await makeSource(t);
const { app, run, owner, ids, others } = source;
const COUNT = Object.keys(ids).length + others.length;

const dir = t.testdir();
const roots = join(dir, 'roots.json');
await writeFile(roots, await (await fetch(`${app.verifyUrl}/trust_roots.json`)).text());

async function filesIn(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

async function linesIn(folder: string): Promise<string[]> {
  const objects = (await filesIn(folder)).filter((path) => path.endsWith('.jsonl.gz'));
  const texts = await Promise.all(objects.map(async (path) => gunzipSync(await readFile(path)).toString()));
  return texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
}

const archive = (folder: string, ...args: string[]) =>
  run('log', 'archive', ORIGIN, '--to', folder, '--json', ...args);
const verify = (folder: string, ...args: string[]) =>
  runHere(['verify', '--export', folder, '--trust-roots', roots, '--json', ...args]);

t.test('an archive verifies offline with the submissions of all projects', async (t) => {
  const folder = join(t.testdir(), 'archive');
  const { code, stdout, stderr } = await archive(folder);
  t.same([code, stderr], [0, '']);
  const archived = JSON.parse(stdout);
  t.match(archived, { origin: ORIGIN, first: 0, end: COUNT, is_whole: true });
  t.equal(archived.objects, archived.written);
  const verified = await verify(folder);
  const { lines, exports, problems, ignored } = JSON.parse(verified.stdout);
  // Of an erased statement nothing is proven any more.
  t.same(lines, { verified: COUNT - 1, not_verified: 0, could_not_check: 1 });
  t.match(problems, [{ reason: /erased/ }]);
  t.equal(ignored, undefined);
  t.match(exports, [{ id: ORIGIN, project: null, environment: 'live', is_complete: true }]);
  t.same(exports[0].logs, [{ origin: ORIGIN, start: 0, from: 0, to: COUNT, gaps: [] }]);
});

t.test('a bundle that is taken out of it is a whole proof', async (t) => {
  const folder = join(t.testdir(), 'archive');
  await archive(folder);
  const lines = (await linesIn(folder)).map((text) => JSON.parse(text));
  const { submission, bundle } = lines.find((one) => one.submission.id === ids.build);
  const verified = await verifyBundle(JSON.stringify(bundle), {
    trustRoots: JSON.parse(await readFile(roots, 'utf8')),
    environment: 'live',
    now: new Date(),
    artifactSha256: submission.artifact.sha256,
    project: owner.projectId,
  });
  t.equal(verified.verdict, 'verified');
});

t.test('a second run writes nothing, and after an interruption what is missing', async (t) => {
  const folder = join(t.testdir(), 'archive');
  await archive(folder);
  const files = await filesIn(folder);
  const before = await Promise.all(files.map((path) => stat(path)));
  t.match(JSON.parse((await archive(folder)).stdout), { written: 0, is_whole: true });
  const after = await Promise.all(files.map((path) => stat(path)));
  t.same(
    after.map(({ mtimeMs }) => mtimeMs),
    before.map(({ mtimeMs }) => mtimeMs),
  );
  const [object = ''] = files.filter((path) => path.endsWith('.gz'));
  await rm(object);
  t.match(JSON.parse((await archive(folder)).stdout), { written: 1 });
  t.same(await filesIn(folder), files);
  t.match(JSON.parse((await verify(folder)).stdout), { lines: { verified: COUNT - 1 } });
});

t.test('parts join, and a gap is an error', async (t) => {
  const folder = join(t.testdir(), 'archive');
  const [batch] = await app.pool<{ size: number }[]>`
    SELECT min(tree_size) AS size FROM batch WHERE log_id = 1`;
  const size = batch?.size ?? 0;
  t.match(await archive(folder, '--first', String(size)), { code: 1, stderr: /lacks leaves before \d+/ });
  t.match(JSON.parse((await archive(folder, '--end', String(size))).stdout), { end: size, is_whole: false });
  t.match(JSON.parse((await archive(folder, '--first', String(size))).stdout), { first: size, end: COUNT });
  t.match(JSON.parse((await verify(folder)).stdout), {
    lines: { verified: COUNT - 1 },
    exports: [{ logs: [{ from: 0, to: COUNT, gaps: [] }] }],
  });
});

t.test('nothing of redacted metadata is in it, and a redaction replaces an object', async (t) => {
  const folder = join(t.testdir(), 'archive');
  const later = await create(app, owner, { build: 'a-secret-branch' });
  await app.drain();
  const origin = 'live-2.log.example.com';
  const again = () => run('log', 'archive', origin, '--to', folder, '--json');
  const first = JSON.parse((await again()).stdout);
  t.match(first, { written: 1, is_whole: false });
  t.match((await linesIn(folder)).join(), /a-secret-branch/);
  await app.rest(`/v1/attestations/${later.id}`, { apiKey: owner.key, method: 'DELETE' });
  t.match(JSON.parse((await again()).stdout), { written: 1 });
  const text = (await linesIn(folder)).join();
  t.notMatch(text, /a-secret-branch/);
  const roots2 = join(t.testdirName, 'roots.json');
  await writeFile(roots2, await (await fetch(`${app.verifyUrl}/trust_roots.json`)).text());
  const verified = await runHere(['verify', '--export', folder, '--trust-roots', roots2, '--json']);
  t.match(JSON.parse(verified.stdout), { verdict: 'verified', lines: { verified: 1 } });
});

t.test('of a log whose next epoch has begun it says whether it has ended', async (t) => {
  const folder = join(t.testdir(), 'archive');
  const [{ ended } = { ended: null }] = await app.pool<{ ended: Date | null }[]>`
    SELECT ended_at AS ended FROM log WHERE id = 1`;
  // The next epoch as if it had just begun: else the worker ends the log again.
  await app.pool`UPDATE log SET created_at = created_at + interval '1 hour' WHERE epoch = 2`;
  await app.pool`UPDATE log SET ended_at = NULL WHERE id = 1`;
  t.match((await run('log', 'archive', ORIGIN, '--to', folder)).stdout, /; the log has not ended yet, /);
  t.match(JSON.parse((await archive(folder)).stdout), { is_whole: false, is_ending: true });
  await app.pool`UPDATE log SET ended_at = ${ended} WHERE id = 1`;
  await app.pool`UPDATE log SET created_at = created_at - interval '1 hour' WHERE epoch = 2`;
  t.match((await run('log', 'archive', ORIGIN, '--to', folder)).stdout, /: it can be imported$/m);
  t.match(JSON.parse((await archive(folder)).stdout), { is_whole: true, is_ending: false });
});

if (MAY_MOUNT) {
  t.test('a full disk is an error that names the file, and the next run continues', async (t) => {
    const disk = await mountSmallDisk(t, 1);
    disk.fill();
    const { code, stderr } = await archive(disk.path);
    t.equal(code, 1);
    t.match(stderr, new RegExp(`${disk.path}/\\S+: ENOSPC: no space left on device`));
    disk.free();
    t.match(await archive(disk.path), { code: 0, stderr: '' });
    t.match(JSON.parse((await verify(disk.path)).stdout), { lines: { verified: COUNT - 1 } });
  });
}

t.test('an unknown log, an unsettled one and a missing key are errors', async (t) => {
  const folder = join(t.testdir(), 'archive');
  t.match(await run('log', 'archive', 'live.example.org', '--to', folder), {
    code: 1,
    stderr: /has no log live\.example\.org; its logs: .*\blive\.log\.example\.com\b/,
  });
  t.match(await archive(folder, '--end', '0'), {
    code: 1,
    stderr: /has no settled batch from leaf 0 on that ends by leaf 0/,
  });
  t.match(await run('log', 'archive', ORIGIN, '--to', 's3://x'), { code: 2, stderr: /--to/ });
  const env = { DATABASE_URL: app.config.databaseUrl };
  const unsigned = await runHere(['log', 'archive', ORIGIN, '--to', folder], { env });
  t.match(unsigned, { code: 1, stderr: /DSSE_KEY_FILE/ });
});
