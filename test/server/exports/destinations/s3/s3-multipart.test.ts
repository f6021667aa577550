import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import type { ExportObject } from '../../../../../src/server/exports/destinations/object-store.js';
import { createSemaphore } from '../../../../../src/server/exports/destinations/s3/bucket.js';
import { spool } from '../../../../../src/server/exports/ship/spool.js';
import { createSpoolBudget } from '../../../../../src/server/exports/ship/spool-budget.js';
import {
  BUCKET,
  objectOf,
  openBucket,
  randomContent,
  startStore,
  writing,
} from '../../../../support/exports/s3/fixture.js';
import { readObject } from '../../../../support/exports/s3/store.js';
import { until } from '../../../../support/until.js';

const MIB = 1024 * 1024;
const NAME = 'copies/exp/live/2026/01/02/btc.jsonl';
const BUFFERED = createSemaphore(1);
const SMALL_PARTS = { multipartBytes: 100_000, partBytes: 50_000, buffered: BUFFERED };

/** A store that takes small parts, and a destination that sends them. */
async function setUp(t: Test) {
  const server = await startStore(t, { minPartBytes: 1 });
  const bucket = await openBucket(t, server, {}, SMALL_PARTS);
  const stored = server.buckets.get(BUCKET) as { objects: Map<string, never>; uploads: Map<string, never> };
  const countOf = (operation: string) => server.requests.filter((one) => one.operation === operation).length;
  const contentOf = (name: string) => {
    const object = stored.objects.get(name);
    return object === undefined
      ? undefined
      : buffer(readObject(object, { start: 0, end: Number.POSITIVE_INFINITY }));
  };
  return { server, bucket, stored, countOf, contentOf };
}

t.test('a large object is uploaded in parts, if the replaced object is unchanged', async (t) => {
  const { server, bucket, stored, countOf, contentOf } = await setUp(t);
  const content = randomContent(225_001);
  const object = objectOf(content);
  t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  t.equal(countOf('UploadPart'), 5);
  t.ok(content.equals((await contentOf(object.name)) as Buffer));
  t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  t.equal(countOf('UploadPart'), 5, 'it is there');
  const later = objectOf(randomContent(150_000), { revision: 2 });
  t.strictSame(await bucket.write(later, writing()), { outcome: 'written' });
  t.strictSame(await bucket.write(object, writing()), { outcome: 'superseded', revision: 2 });
  const conditions = server.requests
    .filter(({ operation }) => operation === 'CompleteMultipartUpload')
    .map(({ headers }) => headers['if-match'] ?? headers['if-none-match']);
  t.match(conditions, ['*', /-5"$/]);
  t.equal(stored.uploads.size, 0);
});

t.test('a stalled upload loses against a later revision, and leaves nothing', async (t) => {
  // The larger one aborts the stalled upload; beside the smaller one the condition fails.
  for (const bytes of [150_000, 10]) {
    const { server, bucket, stored, contentOf } = await setUp(t);
    const content = randomContent(bytes);
    const later = objectOf(content, { revision: 2 });
    let isHeld = false;
    server.fail(({ operation }) => {
      if (operation !== 'CompleteMultipartUpload' || isHeld) return undefined;
      isHeld = true;
      return { kind: 'hold', until: bucket.write(later, writing()) };
    });
    const object = objectOf(randomContent(120_000));
    t.strictSame(await bucket.write(object, writing()), { outcome: 'superseded', revision: 2 });
    t.ok(content.equals((await contentOf(object.name)) as Buffer));
    t.equal(stored.uploads.size, 0);
  }
});

t.test('an upload that fails or is aborted leaves neither object nor upload', async (t) => {
  const { server, bucket, stored, countOf } = await setUp(t);
  const object = objectOf(randomContent(500_000));
  server.fail(({ operation, query }) =>
    operation === 'UploadPart' && query.get('partNumber') === '3'
      ? { kind: 'refuse', code: 'InternalError' }
      : undefined,
  );
  await t.rejects(bucket.write(object, writing()), { name: 'DestinationError', message: /InternalError/ });
  t.equal(countOf('AbortMultipartUpload'), 1);
  const controller = new AbortController();
  const reason = new Error('the lease is lost');
  server.fail(({ operation, query }) => {
    if (operation !== 'UploadPart' || query.get('partNumber') !== '2') return undefined;
    controller.abort(reason);
    return { kind: 'hang' };
  });
  await t.rejects(bucket.write(object, writing(controller.signal)), reason);
  t.equal(stored.objects.size, 0);
  t.equal(stored.uploads.size, 0);
});

t.test('an upload that a killed process left is aborted by the next one of the object', async (t) => {
  const { server, bucket, stored } = await setUp(t);
  const object = objectOf(randomContent(120_000));
  server.fail(({ operation }) =>
    operation === 'CompleteMultipartUpload' || operation === 'AbortMultipartUpload'
      ? { kind: 'refuse', code: 'AccessDenied' }
      : undefined,
  );
  await t.rejects(bucket.write(object, writing()), /allow s3:PutObject \(s3:PutObject attestations\/copies/);
  await t.rejects(bucket.write(objectOf(randomContent(120_000), { name: 'copies/other' }), writing()));
  t.equal(stored.uploads.size, 2);
  server.fail(() => undefined);
  t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  t.strictSame(
    [...stored.uploads.values()].map(({ key }) => key),
    ['copies/other'],
    'only that of the same object',
  );
});

t.test('leftovers that may not be listed are no failure', async (t) => {
  const server = await startStore(t, {
    minPartBytes: 1,
    permit: ({ action }) => action !== 's3:ListBucketMultipartUploads',
  });
  const bucket = await openBucket(t, server, {}, SMALL_PARTS);
  t.strictSame(await bucket.write(objectOf(randomContent(120_000)), writing()), { outcome: 'written' });
});

t.test('an upload whose answer is lost is found by the next write', async (t) => {
  const { server, bucket, stored, countOf } = await setUp(t);
  server.fail(({ operation }) =>
    operation === 'CompleteMultipartUpload' ? { kind: 'cut-answer' } : undefined,
  );
  const object = objectOf(randomContent(120_000));
  // The SDK asks again; the upload is no longer there, but the object is.
  t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  t.equal(countOf('CreateMultipartUpload'), 1);
  t.equal(stored.objects.size, 1);
});

t.test('an object that cannot be read fails with its own error, not with one of the bucket', async (t) => {
  const { bucket, stored } = await setUp(t);
  const error = new Error('the disk is broken');
  const read = () =>
    Readable.from(
      (async function* () {
        yield Buffer.alloc(10_000);
        throw error;
      })(),
      { objectMode: false },
    );
  for (const bytes of [50_000, 150_000])
    await t.rejects(bucket.write({ ...objectOf(randomContent(bytes)), read }, writing()), error);
  t.equal(stored.uploads.size, 0);
});

t.test('a file of 70 MB goes in parts of 8 MiB without being held in memory', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  const object = await sparseObject(t, 70_000_000);
  t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  const parts = server.requests.filter(({ operation }) => operation === 'UploadPart');
  t.strictSame(
    parts.map(({ bytes }) => bytes).sort((one, other) => other - one),
    [...Array(8).fill(8 * MIB), 70_000_000 - 64 * MIB],
  );
  t.equal(server.buckets.get(BUCKET)?.objects.get(object.name)?.bytes, 70_000_000);
});

t.test('the parts of a spooled object are its bytes', async (t) => {
  const { bucket, contentOf } = await setUp(t);
  const content = randomContent(725_001);
  const render = async function* () {
    for (let start = 0; start < content.length; start += 100_000)
      yield content.subarray(start, start + 100_000);
  };
  const budget = createSpoolBudget(10 * MIB);
  const options = { folder: t.testdir(), budget, projectId: 'p', isGzip: false, signal: writing().signal };
  const made = { ...objectOf(content), render };
  const spooled = await spool(made, options, async ({ whole }) => {
    const object = { ...objectOf(content), ...(await whole()) };
    // Its parts are in memory at first, and streamed while another upload has the place.
    for (const revision of [1, 2]) {
      t.strictSame(await bucket.write({ ...object, revision }, writing()), { outcome: 'written' });
      t.ok(content.equals((await contentOf(object.name)) as Buffer));
      t.equal(BUFFERED.tryAcquire(), revision === 1, 'the place was given back once');
    }
    await t.rejects(async () => object.fill?.(Buffer.alloc(10), content.length - 5), /has become shorter/);
    return object;
  });
  BUFFERED.release();
  await t.rejects(bucket.write({ ...spooled, revision: 3 }, writing()), /was disposed of/);
  t.ok(BUFFERED.tryAcquire(), 'an upload that fails gives it back');
  BUFFERED.release();
});

t.test('parts are sent while the next are made, and the object is whole', async (t) => {
  const { server, bucket, contentOf, stored } = await setUp(t);
  const content = randomContent(725_001);
  const sent = () => server.requests.filter(({ operation }) => operation === 'UploadPart').length;
  const object = { name: NAME, contentType: 'application/jsonl', revision: 3 };
  const write = (render: () => AsyncIterable<Uint8Array>, isCurrent = async () => true) => {
    const options = {
      folder: t.testdir(),
      budget: createSpoolBudget(10 * MIB),
      projectId: 'p',
      isGzip: false,
    };
    const { signal } = writing();
    return spool({ ...object, render }, { ...options, signal }, async (streamed) =>
      bucket.writeStreamed?.(streamed, { signal, isCurrent }),
    );
  };
  const waitingForParts = async function* () {
    const before = sent();
    yield content.subarray(0, 600_000);
    await until('the first part is there', () => sent() > before);
    yield content.subarray(600_000);
  };
  t.strictSame(await write(waitingForParts), { outcome: 'written' });
  t.ok(content.equals((await contentOf(NAME)) as Buffer));
  const atOnce = async function* () {
    yield content;
  };
  t.same(await write(atOnce), { outcome: 'superseded', revision: 3 }, 'whose SHA-256 is not known');

  object.revision = 4;
  let asked = 0;
  const ended = async () => asked++ === 0;
  t.same(await write(waitingForParts, ended), { outcome: 'superseded', revision: undefined });
  let times = 0;
  const inChunks = async function* () {
    times++;
    for (let start = 0; start < content.length; start += 60_000)
      yield content.subarray(start, start + 60_000);
  };
  let isLost = false;
  server.fail(({ operation }) => {
    if (operation !== 'CompleteMultipartUpload' || isLost) return undefined;
    isLost = true;
    return { kind: 'refuse', code: 'PreconditionFailed' };
  });
  t.strictSame(await write(inChunks), { outcome: 'written' });
  t.equal(times, 2, 'after a lost race the object is made again, whole');
  t.ok(content.equals((await contentOf(NAME)) as Buffer));
  object.revision = 5;
  t.strictSame(await write(inChunks), { outcome: 'written' });
  t.equal(times, 3, 'otherwise once');
  t.ok(content.equals((await contentOf(NAME)) as Buffer));
  object.revision = 6;
  const failing = async function* () {
    yield content;
    throw new Error('the database is away');
  };
  await t.rejects(write(failing), { name: 'Error', message: 'the database is away' });
  t.equal(stored.uploads.size, 0, 'what was sent is taken back');
  t.ok(content.equals((await contentOf(NAME)) as Buffer), 'and the object stays as it was');
  t.strictSame(await write(inChunks), { outcome: 'written' }, 'until the next attempt');
});

t.test('of an object that is known to be large nothing is in a file or waits', async (t) => {
  const { server, bucket, contentOf } = await setUp(t);
  const content = randomContent(325_001);
  const budget = createSpoolBudget(MIB);
  const { signal } = writing();
  const options = { folder: '/nowhere', budget, projectId: 'p', isGzip: false, signal };
  const render = async function* () {
    yield content.subarray(0, SMALL_PARTS.partBytes);
    await until('the first part is there', () =>
      server.requests.some(({ operation }) => operation === 'UploadPart'),
    );
    yield content.subarray(SMALL_PARTS.partBytes);
  };
  const made = { name: NAME, contentType: 'application/jsonl', revision: 1, render };
  const isLonger = async (bytes: number) => bytes < content.length;
  const outcome = await spool({ ...made, isLonger }, options, async (streamed) => {
    const written = await bucket.writeStreamed?.(streamed, writing());
    const sha256 = createHash('sha256').update(content).digest();
    t.same(streamed.summary(), { bytes: content.length, sha256 });
    return written;
  });
  t.strictSame(outcome, { outcome: 'written' });
  t.ok(content.equals((await contentOf(NAME)) as Buffer));
});

/** A file that is all holes. */
async function sparseObject(t: Test, bytes: number): Promise<ExportObject> {
  const path = join(t.testdir(), 'sparse');
  await writeFile(path, '');
  await truncate(path, bytes);
  const read = ({ start, end } = { start: 0, end: bytes }) => createReadStream(path, { start, end: end - 1 });
  const hash = createHash('sha256');
  for await (const chunk of read()) hash.update(chunk);
  return { ...objectOf(''), bytes, sha256: hash.digest(), read };
}
