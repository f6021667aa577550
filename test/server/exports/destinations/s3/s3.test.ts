import { PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import t from 'tap';
import type { ExportObject } from '../../../../../src/server/exports/destinations/object-store.js';
import type { Fault } from '../../../../support/exports/s3/faults.js';
import {
  BUCKET,
  EXPORT_ID,
  OWNER,
  objectOf,
  openBucket,
  startStore,
  writing,
} from '../../../../support/exports/s3/fixture.js';

const { signal } = new AbortController();

function contentOf(server: Awaited<ReturnType<typeof startStore>>, name: string) {
  return server.buckets.get(BUCKET)?.objects.get(name);
}

t.test('a probe succeeds any number of times', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  await bucket.probe(signal);
  await bucket.probe(signal);
  t.strictSame([...(server.buckets.get(BUCKET)?.objects.keys() ?? [])], [`copies/${EXPORT_ID}/probe`]);
});

t.test(
  'an object is written, overwritten by a later revision only, and written again for nothing',
  async (t) => {
    const server = await startStore(t);
    const bucket = await openBucket(t, server);
    const write = (object: ExportObject) => bucket.write(object, writing());
    const first = objectOf('one\n');
    t.strictSame(await write(first), { outcome: 'written' });
    t.match(contentOf(server, first.name), {
      bytes: 4,
      contentType: 'application/x-ndjson',
      metadata: { revision: '1', sha256: Buffer.from(first.sha256).toString('hex') },
      checksum: { name: 'sha256' },
    });
    t.strictSame(await write(first), { outcome: 'written' });
    t.strictSame(await write(objectOf('two\n')), { outcome: 'superseded', revision: 1 });
    t.strictSame(await write(objectOf('three\n', { revision: 3 })), { outcome: 'written' });
    t.strictSame(await write(objectOf('two\n', { revision: 2 })), { outcome: 'superseded', revision: 3 });
    t.equal(contentOf(server, first.name)?.bytes, 6);
    const puts = server.requests.filter(({ operation }) => operation === 'PutObject');
    t.strictSame(
      puts.map(({ headers }) => [headers['if-none-match'] !== undefined, headers['if-match'] !== undefined]),
      [
        [true, false],
        [false, true],
      ],
    );
  },
);

t.test("a worker whose clock is two hours off goes by the store's", async (t) => {
  for (const offMs of [-7_200_000, 7_200_000]) {
    const server = await startStore(t, { now: () => Date.now() + offMs });
    const bucket = await openBucket(t, server);
    await bucket.probe(signal);
    const object = objectOf('one\n');
    t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
    t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  }
});

t.test('a writer that stalls between reading and writing does not undo a later revision', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  await bucket.write(objectOf('one\n'), writing());
  let isHeld = false;
  const later = objectOf('redacted\n', { revision: 3 });
  server.fail(({ operation }) => {
    if (operation !== 'PutObject' || isHeld) return undefined;
    isHeld = true;
    return { kind: 'hold', until: bucket.write(later, writing()) };
  });
  const stalled = objectOf('secret\n', { revision: 2 });
  t.strictSame(await bucket.write(stalled, writing()), { outcome: 'superseded', revision: 3 });
  t.equal(contentOf(server, later.name)?.metadata.revision, '3');
});

t.test('a writer without its lease writes nothing', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  const control = { signal, isCurrent: async () => false };
  t.strictSame(await bucket.write(objectOf('one\n'), control), {
    outcome: 'superseded',
    revision: undefined,
  });
  const failure = new Error('the database is away');
  await t.rejects(
    bucket.write(objectOf('one\n'), { signal, isCurrent: () => Promise.reject(failure) }),
    failure,
  );
  t.notOk(server.requests.some(({ operation }) => operation === 'PutObject'));
});

t.test('of writers in a race the latest revision remains', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  const revisions = [2, 4, 1, 3];
  const outcomes = await Promise.all(
    revisions.map((revision) => bucket.write(objectOf(`${revision}\n`, { revision }), writing())),
  );
  t.equal(outcomes[1]?.outcome, 'written');
  t.equal(contentOf(server, objectOf('').name)?.metadata.revision, '4');
});

t.test('a writer that loses every race gives up', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  for (const code of ['ConditionalRequestConflict', 'PreconditionFailed', 'NoSuchKey']) {
    server.requests.length = 0;
    server.fail(({ operation }) => (operation === 'PutObject' ? { kind: 'refuse', code } : undefined));
    await t.rejects(bucket.write(objectOf('one\n'), writing()), {
      name: 'DestinationError',
      message: /^another writer keeps changing copies\/day\/batch.jsonl/,
    });
    t.equal(server.requests.filter(({ operation }) => operation === 'HeadObject').length, 5);
  }
});

t.test('a foreign object is replaced', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  const object = objectOf('one\n');
  const { bytes, sha256 } = object;
  const client = new S3Client({
    endpoint: server.url,
    region: 'us-east-1',
    credentials: OWNER,
    forcePathStyle: true,
  });
  t.teardown(() => client.destroy());
  await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: object.name, Body: 'hello' }));
  t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  t.match(contentOf(server, object.name), {
    bytes,
    metadata: { sha256: Buffer.from(sha256).toString('hex') },
  });
});

t.test('permission to list the bucket is not needed, to read and to write is', async (t) => {
  const denied = new Set(['s3:ListBucket']);
  const server = await startStore(t, { permit: ({ action }) => !denied.has(action) });
  const bucket = await openBucket(t, server);
  await bucket.probe(signal);
  t.strictSame(await bucket.write(objectOf('one\n'), writing()), { outcome: 'written' });
  t.strictSame(await bucket.write(objectOf('two\n', { revision: 2 }), writing()), { outcome: 'written' });
  denied.add('s3:GetObject');
  const mayNotRead = {
    name: 'DestinationError',
    message: /^access is denied; allow s3:GetObject \(.*: HTTP 403\)$/,
  };
  await t.rejects(bucket.write(objectOf('three\n', { revision: 3 }), writing()), mayNotRead);
  await t.rejects(bucket.probe(signal), mayNotRead);
  denied.delete('s3:GetObject');
  denied.add('s3:PutObject');
  const mayNotWrite = {
    name: 'DestinationError',
    message: /^access is denied; allow s3:PutObject \(s3:PutObject attestations\/copies/,
  };
  await t.rejects(bucket.write(objectOf('three\n', { revision: 3 }), writing()), mayNotWrite);
  await t.rejects(bucket.probe(signal), mayNotWrite);
});

t.test('a store that ignores conditions or loses metadata is rejected', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  const answering = (headers: Record<string, string>): Fault => {
    return { kind: 'answer', with: (response) => response.writeHead(200, { etag: '"a"', ...headers }).end() };
  };
  await bucket.probe(signal);
  for (const [header, message] of [
    ['if-match', /^the store does not return .* as it was written; use another store$/],
    ['if-none-match', /^the store ignores conditions of writes .*; use another store$/],
  ] as const) {
    server.fail(({ operation, headers }) =>
      operation === 'PutObject' && headers[header] !== undefined ? answering({}) : undefined,
    );
    await t.rejects(bucket.probe(signal), { name: 'DestinationError', message });
  }
  server.fail(({ operation }) => (operation === 'HeadObject' ? answering({}) : undefined));
  await t.rejects(bucket.probe(signal), /does not return .* as it was written/);
});

t.test('an export without a prefix is at the top of the bucket', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server, { prefix: '' });
  await bucket.probe(signal);
  t.ok(contentOf(server, `${EXPORT_ID}/probe`));
});

t.test('an empty object, and one with every allowed character in its name, are written', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  for (const object of [objectOf(''), objectOf('x', { name: "A-z_0=9./.x/b+c d/é(1)*!'.jsonl" })]) {
    t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
    t.equal(contentOf(server, object.name)?.bytes, object.bytes);
    t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  }
});
