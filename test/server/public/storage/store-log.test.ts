/** The public log in a folder and in a bucket: whole up to its checkpoint at every moment, and never another history. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  type OperatorStore,
  openOperatorStore,
} from '../../../../src/server/exports/destinations/operator-store.js';
import { openLogCache } from '../../../../src/server/log/log-cache.js';
import { ensureLog, getLog, listLogs, logName } from '../../../../src/server/log/store/logs.js';
import { createLogStorer } from '../../../../src/server/public/storage/log-storer.js';
import { type StoreLogDeps, storeLog } from '../../../../src/server/public/storage/store-log.js';
import { readStoredPage } from '../../../../src/server/web/stored-page.js';
import { BUCKET, bucketAt, startStore } from '../../../support/exports/s3/fixture.js';
import {
  drain,
  makePipeline,
  makeWitness,
  openPipeline,
  type TestPipeline,
} from '../../../support/pipeline.js';
import { testDatabase } from '../../../support/servers/shared-servers.js';
import { examineLog } from './stored-log.js';

const LIVE = 'log/live';
const SOURCES = { verifyUrl: () => 'https://log.example.com', verifyPage: readStoredPage() };

async function temporaryFolder(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'attest-log-storage-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

async function open(t: Test, batchMaxLeaves = 65_536) {
  const test = await openPipeline(t, [await makeWitness(t, 'one')], { batchMaxLeaves });
  const folder = await temporaryFolder(t);
  const deps = await depsOf(test, await openOperatorStore({ folder }));
  return { test, folder, deps, log: await getLog(test.pool, test.logId) };
}

async function depsOf({ pool, pipeline }: TestPipeline, storage: OperatorStore): Promise<StoreLogDeps> {
  const signal = new AbortController().signal;
  const { log, signerOf } = pipeline;
  const storeTrustRoots = async () => {};
  return { pool, log, signerOf, logCache: await openLogCache(pool), storage, signal, storeTrustRoots };
}

async function grow(test: TestPipeline, count: number): Promise<void> {
  await test.submit(count);
  await drain(test.pipeline);
}

/** Checks all that a reader needs for the checkpoint in a folder. @returns its size */
function checkFolder(t: Test, folder: string): number {
  const read = (path: string) => {
    const file = join(folder, LIVE, path);
    return existsSync(file) ? readFileSync(file) : undefined;
  };
  const { size, problem } = examineLog(read);
  t.equal(problem, undefined);
  return size;
}

t.test('a folder has each published batch, whole', async (t) => {
  const { test, folder, deps, log } = await open(t);
  for (let run = 0; run < 2; run++) t.equal(await storeLog(deps, log), 0);
  t.equal(checkFolder(t, folder), 0, 'the checkpoint of the empty log');
  let size = 0;
  for (const count of [1, 4, 251, 1, 300, 3]) {
    await grow(test, count);
    size += count;
    t.equal(await storeLog(deps, log), size);
    t.equal(checkFolder(t, folder), size);
  }
  t.ok(existsSync(join(folder, LIVE, 'tile/0/000.p/5')), 'tiles of earlier checkpoints stay');
});

t.test('a log that is ahead is written from batch to batch', async (t) => {
  const { test, folder, deps, log } = await open(t, 100);
  await grow(test, 650);
  const stopping = new AbortController();
  const { store } = deps.storage;
  let checkpoints = 0;
  const stopsAtSecond: StoreLogDeps = {
    ...deps,
    signal: stopping.signal,
    storage: {
      ...deps.storage,
      store: {
        ...store,
        write: async (object, ...rest) => {
          if (object.name.endsWith('/checkpoint') && ++checkpoints === 2) throw new Error('killed');
          return store.write(object, ...rest);
        },
      },
    },
  };
  await t.rejects(storeLog(stopsAtSecond, log, 250), /killed/);
  t.equal(checkFolder(t, folder), 200, 'what a reader sees is whole');
  t.equal(await storeLog(deps, log, 50), 650, 'batches of more than a step are written, too');
  t.equal(checkFolder(t, folder), 650);
});

t.test('another history is never written over, and names the place', async (t) => {
  const { test, folder, deps, log } = await open(t);
  await grow(test, 3);
  await storeLog(deps, log);
  const checkpoint = join(folder, LIVE, 'checkpoint');
  const note = await readFile(checkpoint, 'utf8');
  const lie = async (text: string, expected: RegExp) => {
    await writeFile(checkpoint, text);
    await t.rejects(storeLog(deps, log), { name: 'StorageConflict', message: expected });
    t.equal(await readFile(checkpoint, 'utf8'), text);
  };
  const [, , root = ''] = note.split('\n');
  await lie(note.replace(root, Buffer.alloc(32).toString('base64')), /another root at that size/);
  await lie(
    note.replace('\n3\n', '\n2\n'),
    /has a checkpoint of size 2, and the database published 3 leaves/,
  );
  await lie(
    note.replace('\n3\n', '\n9\n'),
    /has a checkpoint of size 9, and the database published 3 leaves/,
  );
  await lie(note.replace('live.', 'other.'), /is of the log other\.log\.example\.com/);
  await writeFile(checkpoint, 'no note');
  await t.rejects(storeLog(deps, log), { name: 'FormatError' });
  await writeFile(checkpoint, note);
  t.equal(await storeLog(deps, log), 3);
});

t.test('a tile of other bytes stops the log before its checkpoint', async (t) => {
  const { test, folder, deps, log } = await open(t);
  await grow(test, 3);
  await storeLog(deps, log);
  await mkdir(join(folder, LIVE, 'tile/0/000.p'), { recursive: true });
  await writeFile(join(folder, LIVE, 'tile/0/000.p/5'), 'x');
  await grow(test, 2);
  await t.rejects(storeLog(deps, log), { name: 'StorageConflict', message: /000\.p\/5 has other bytes/ });
  t.equal(checkFolder(t, folder), 3);
});

t.test('an installation that shares the storage of another stops', async (t) => {
  const { test, folder, deps, log } = await open(t);
  await grow(test, 3);
  await storeLog(deps, log);
  const stranger = await makePipeline(t, { databaseUrl: await testDatabase(t), witnesses: [] });
  await grow(stranger, 3);
  const others = await depsOf(stranger, deps.storage);
  await t.rejects(storeLog(others, await getLog(stranger.pool, stranger.logId)), { name: 'StorageConflict' });
  t.equal(checkFolder(t, folder), 3);
});

t.test('a log whose storage has another history keeps no other from being written', async (t) => {
  const { test, folder, deps, log } = await open(t);
  const { publicKey, mlDsaPublicKey } = log;
  const next = { environment: log.environment, lane: 2, epoch: 1, origin: 'live.lane.log.example.com' };
  await ensureLog(test.pool, { ...next, publicKey, mlDsaPublicKey });
  await mkdir(join(folder, LIVE), { recursive: true });
  await writeFile(join(folder, LIVE, 'checkpoint'), `other.example.com\n0\n${'A'.repeat(43)}=\n\n`);
  const storer = createLogStorer({ ...deps, logCache: await openLogCache(test.pool) }, SOURCES);
  for (let run = 0; run < 3; run++) await storer.storeLogs();
  const said = test.lines.filter(({ msg }) => /LOG_STORAGE/.test(String(msg)));
  t.match(said, [{ level: 'error', msg: /: the log live\.log\.example\.com$/ }]);
  t.equal(said.length, 1, 'said once');
  const other = (await listLogs(test.pool)).find(({ lane }) => lane === 2);
  t.match(await readFile(join(folder, `log/${logName(other!)}/checkpoint`), 'utf8'), /^live\.lane/);
});

t.test('workers at once write a bucket, and each object is cached as long as it holds', async (t) => {
  const { test, deps } = await open(t);
  const server = await startStore(t);
  const storage = await openOperatorStore({ storage: bucketAt(server.url, 'public') });
  t.teardown(storage.close);
  const storers = [1, 2, 3].map(() => createLogStorer({ ...deps, storage }, SOURCES));
  for (let round = 0; round < 5; round++) {
    await grow(test, 60);
    await Promise.all(storers.map(({ storeLogs }) => storeLogs()));
    await storers[0]?.storeLogs();
    t.equal(storers[0]?.sizes().get('live.log.example.com'), (round + 1) * 60);
  }
  const objects = server.buckets.get(BUCKET)?.objects;
  t.ok(objects?.has('public/log/live/tile/entries/000'));
  t.ok(objects?.has('public/log/live/tile/0/001.p/44'));
  const cached = (key: string) =>
    server.requests.find((one) => one.method === 'PUT' && one.key === key)?.headers;
  t.match(cached('public/log/live/tile/0/000'), { 'cache-control': /immutable/ });
  t.match(cached('public/log/live/checkpoint'), { 'cache-control': 'public, max-age=5' });
  const order = server.requests.filter(({ method }) => method === 'PUT').map(({ key }) => key);
  t.ok(order.includes('public/trust_roots.json'));
  t.ok(
    order.indexOf('public/trust_roots.json') < order.indexOf('public/log/live/checkpoint'),
    'the keys that signed entries come first',
  );
  await Promise.all(storers.map(({ storeRoots }) => storeRoots()));
  // One that lost a race looks again.
  await storers[0]?.storeRoots();
  for (const name of [
    'trust_roots.json',
    'trusted_root.json',
    'trusted_root.test.json',
    'policy',
    'policy.test',
    'index.html',
  ])
    t.ok(objects?.has(`public/${name}`), name);
  const puts = server.requests.filter(({ method }) => method === 'PUT').map(({ key }) => key);
  const { assets } = SOURCES.verifyPage;
  t.ok(assets.length >= 2);
  for (const { name } of assets) {
    t.match(cached(`public/${name}`), { 'cache-control': /immutable/ });
    t.ok(puts.indexOf(`public/${name}`) < puts.indexOf('public/index.html'), 'the document comes last');
  }
  t.match(cached('public/index.html'), { 'content-type': 'text/html; charset=utf-8' });
  server.requests.length = 0;
  await storers[0]?.storeLogs();
  await storers[0]?.storeRoots();
  t.same(server.requests, [], 'nothing changed');
});

t.test('a storage that is away is logged once for a log, and caught up with', async (t) => {
  const { test, deps } = await open(t);
  const server = await startStore(t);
  const storage = await openOperatorStore({ storage: bucketAt(server.url, 'public') });
  t.teardown(storage.close);
  const storer = createLogStorer({ ...deps, storage }, SOURCES);
  await server.goAway();
  await grow(test, 2);
  for (let run = 0; run < 3; run++) await storer.storeLogs();
  await server.comeBack();
  await storer.storeLogs();
  t.equal(storer.sizes().get('live.log.example.com'), 2);
  const said = test.lines
    .filter(({ msg }) => /LOG_STORAGE.* live\./.test(String(msg)))
    .map(({ level, msg }) => `${level} ${msg}`);
  t.same(said, [
    'error LOG_STORAGE is not written: the log live.log.example.com',
    'info LOG_STORAGE is written again: the log live.log.example.com',
  ]);
});
