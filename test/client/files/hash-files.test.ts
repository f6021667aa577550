import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { createClient, createSet, hashFiles, readSet, verifySet } from '../../../src/client/client.js';
import { divideFiles } from '../../../src/client/files/hash-jobs.js';
import { makeFolder, presentOf, sortedPaths, takeAll } from './folders.js';

t.test('files come with their hashes, in the order of the bytes of whole paths', async (t) => {
  const paths = [
    'a/b',
    'a-b',
    'a.b/c',
    'a/B',
    'é',
    '\u{1f600}',
    '\uffee',
    '.hidden',
    'a b',
    'a/b-/c',
    'a/b.c',
    'Z',
    '0/0/0',
  ];
  const found = await takeAll(hashFiles(makeFolder(t, paths)));
  t.same(found, sortedPaths(paths).map(presentOf));
});

t.test('an empty folder, and one of empty folders, has no files', async (t) => {
  t.same(await takeAll(hashFiles(t.testdir({ a: { b: {} } }))), []);
});

t.test('the hash of a file of any length is that of its bytes', async (t) => {
  const lengths = [0, 1, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, 40 * 1024 * 1024 + 7];
  const contents = lengths.map((length) => randomBytes(length));
  const dir = t.testdir();
  for (const [i, content] of contents.entries()) writeFileSync(join(dir, String(i)), content);
  let read = 0;
  const onBytes = (bytes: number) => {
    read += bytes;
  };
  const found = await takeAll(hashFiles(dir, { onBytes }));
  const digests = contents.map((content) => createHash('sha256').update(content).digest('hex'));
  t.same(
    found,
    lengths.map((bytes, i) => ({ path: String(i), bytes, sha256: digests[i] })),
  );
  t.equal(
    read,
    lengths.reduce((sum, length) => sum + length),
  );
});

t.test('20,000 small files come once each, and a set of them is that of the folder', async (t) => {
  const paths = Array.from({ length: 20_000 }, (_, i) => `d${i % 40}/${i}.txt`);
  const dir = makeFolder(t, paths);
  let listed = 0;
  const onListed = (files: number) => {
    listed = files;
  };
  const set = createSet();
  const texts: string[] = [];
  const found: string[] = [];
  for await (const file of hashFiles(dir, { onListed })) {
    found.push(file.path);
    texts.push(set.add({ ...file, salt: randomBytes(16).toString('hex') }));
  }
  t.equal(listed, paths.length);
  t.same(found, sortedPaths(paths));
  const { text, headSha256 } = set.end();
  const bytes = Buffer.from([...texts, text].join(''));
  t.equal((await readSet([bytes]).finish()).headSha256, headSha256);
  const { checks } = await verifySet([bytes], headSha256, presentOf('d7/7.txt'));
  t.ok(checks.every(({ status }) => status === 'passed'));
});

t.test('a filter leaves out files, and folders without entering them', async (t) => {
  const dir = makeFolder(t, ['a/keep', 'a/skip', 'b/keep', 'keep']);
  const asked: string[] = [];
  const filter = (path: string, isFolder: boolean) => {
    asked.push(`${path}${isFolder ? '/' : ''}`);
    return isFolder ? path !== 'b' : path.endsWith('keep');
  };
  t.same(await takeAll(hashFiles(dir, { filter })), ['a/keep', 'keep'].map(presentOf));
  t.same(asked.sort(), ['a/', 'a/keep', 'a/skip', 'b/', 'keep']);
});

t.test('the signal ends it with its reason, before and while files are hashed', async (t) => {
  const dir = makeFolder(t, ['a', 'b', 'c']);
  const reason = new Error('enough');
  await t.rejects(takeAll(hashFiles(dir, { signal: AbortSignal.abort(reason) })), reason);
  const controller = new AbortController();
  const onListed = () => controller.abort(reason);
  await t.rejects(takeAll(hashFiles(dir, { signal: controller.signal, onListed })), reason);
  for await (const { path } of hashFiles(dir)) {
    t.equal(path, 'a', 'a caller may break off');
    break;
  }
});

t.test(
  'a wrong option is a TypeError, and a folder that is not there the error of the file system',
  async (t) => {
    const dir = makeFolder(t, ['a']);
    const wrong = { followSymlinks: 'yes' } as unknown as { followSymlinks: boolean };
    await t.rejects(takeAll(hashFiles(dir, wrong)), TypeError);
    await t.rejects(takeAll(hashFiles(dir, { include: [] } as object)), /there is no option include/);
    await t.rejects(takeAll(hashFiles(join(dir, 'none'))), { code: 'ENOENT' });
    await t.rejects(takeAll(hashFiles(join(dir, 'a'))), { code: 'ENOTDIR' });
    t.type(createClient, 'function');
  },
);

type Step = { readonly isKept: boolean; readonly pick: number; readonly done: number };

/** Takes and ends jobs by these steps, over and over, until all results are there. Returns how often each file was done. */
function runJobs(count: number, jobFiles: number, steps: readonly Step[]): number[] {
  const jobs = divideFiles(count, { jobFiles, maxAhead: MAX_AHEAD });
  const times = new Array<number>(count).fill(0);
  const open: { from: number; to: number }[] = [];
  let taken = 0;
  for (let i = 0; taken < count; i++) {
    const { isKept, pick, done } = steps[i % steps.length]!;
    const job = jobs.take(taken);
    if (job !== undefined) open.push(job);
    if (open.some(({ from }) => from >= taken + MAX_AHEAD + jobFiles))
      throw new Error('a thread is too far ahead');
    if (job !== undefined && isKept) continue;
    const [ended] = open.splice(pick % open.length, 1);
    if (ended === undefined) throw new Error('there is no job, and not all is done');
    const hashed = 1 + (done % (ended.to - ended.from));
    for (let at = ended.from; at < ended.from + hashed; at++) times[at]!++;
    jobs.end(ended.from, hashed);
    while (times[taken] !== undefined && times[taken]! > 0) taken++;
  }
  return times;
}

const MAX_AHEAD = 64;

t.test('jobs cover every file once, and what a thread gives back again', (t) => {
  const step = fc.record({ isKept: fc.boolean(), pick: fc.nat(), done: fc.nat() });
  const steps = fc.array(step, { minLength: 1 });
  const property = fc.property(
    fc.nat(300),
    fc.integer({ min: 1, max: 40 }),
    steps,
    (count, jobFiles, steps) => runJobs(count, jobFiles, steps).every((times) => times === 1),
  );
  fc.assert(property);
  t.end();
});
