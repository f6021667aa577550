import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import t, { type Test } from 'tap';
import { startChecksum } from '../../../../support/exports/s3/checksums.js';
import { BUCKET, OWNER, randomContent, startStore } from '../../../../support/exports/s3/fixture.js';

/** A store, and the bare SDK as it comes. */
async function setUp(t: Test, config: S3ClientConfig = {}) {
  const server = await startStore(t);
  const options = { endpoint: server.url, region: 'us-east-1', credentials: OWNER, forcePathStyle: true };
  const client = new S3Client({ ...options, maxAttempts: 1, ...config });
  t.teardown(() => client.destroy());
  return { server, client, stored: server.buckets.get(BUCKET)?.objects };
}

t.test('checksums are those of the catalogue of CRCs', async (t) => {
  const digestOf = (name: Parameters<typeof startChecksum>[0]) => {
    const checksum = startChecksum(name);
    for (const part of ['1234', '', '56789']) checksum.update(Buffer.from(part));
    return Buffer.from(checksum.digest(), 'base64').toString('hex');
  };
  t.equal(digestOf('crc32'), 'cbf43926');
  t.equal(digestOf('crc64nvme'), 'ae8b14860a799888');
  t.equal(digestOf('sha256'), createHash('sha256').update('123456789').digest('hex'));
});

t.test('streams of the bare SDK come in signed chunks with a checksum in the trailer', async (t) => {
  const { server, client, stored } = await setUp(t);
  const content = randomContent(300_000);
  const path = join(t.testdir(), 'content');
  await writeFile(path, content);
  for (const ChecksumAlgorithm of ['CRC32', 'SHA256'] as const) {
    const Body = createReadStream(path);
    await client.send(
      new PutObjectCommand({ Bucket: BUCKET, Key: 'a', Body, ContentLength: 300_000, ChecksumAlgorithm }),
    );
    t.equal(server.requests.at(-1)?.headers['content-encoding'], 'aws-chunked');
    t.equal(stored?.get('a')?.checksum?.name, ChecksumAlgorithm.toLowerCase());
    const { Body: found } = await client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'a' }));
    t.ok(content.equals((await found?.transformToByteArray()) ?? Buffer.alloc(0)));
  }
});

t.test('a wrong checksum, and one byte that changed on its way, are rejected', async (t) => {
  const { server, client, stored } = await setUp(t);
  const put = (checksums: object) =>
    client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'a', Body: 'one', ...checksums }));
  const wrong = createHash('sha256').update('two').digest('base64');
  await t.rejects(put({ ChecksumSHA256: wrong }), { name: 'BadDigest' });
  await t.rejects(put({ ChecksumCRC32: 'AAAAAA==' }), { name: 'BadDigest' });
  await t.rejects(put({ ChecksumCRC64NVME: 'AAAAAAAAAAA=' }), { name: 'BadDigest' });
  client.middlewareStack.add(
    (next) => (args) => {
      (args.request as { body: string }).body = 'onf';
      return next(args);
    },
    { step: 'finalizeRequest', priority: 'low' },
  );
  await t.rejects(put({}), { name: 'XAmzContentSHA256Mismatch' });
  t.equal(stored?.size, 0);
  t.equal(server.requests.length, 4);
});

t.test('ranges, metadata, pages of keys and deletion', async (t) => {
  const { client } = await setUp(t);
  const Bucket = BUCKET;
  for (const Key of ['a/1', 'a/2', 'a/3', 'b/1 +é'])
    await client.send(new PutObjectCommand({ Bucket, Key, Body: '0123456789', Metadata: { revision: '7' } }));
  const read = async (Range: string) => {
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key: 'b/1 +é', Range }));
    return Body?.transformToString();
  };
  t.strictSame(await Promise.all(['bytes=2-4', 'bytes=7-', 'bytes=-2', 'bytes=9-99'].map(read)), [
    '234',
    '789',
    '89',
    '9',
  ]);
  await t.rejects(read('bytes=10-'), { name: 'InvalidRange' });
  t.match(await client.send(new HeadObjectCommand({ Bucket, Key: 'a/1' })), {
    ContentLength: 10,
    Metadata: { revision: '7' },
  });
  const first = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'a/', MaxKeys: 2 }));
  t.match(first, { KeyCount: 2, IsTruncated: true, Contents: [{ Key: 'a/1', Size: 10 }, { Key: 'a/2' }] });
  const ContinuationToken = first.NextContinuationToken;
  const second = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'a/', ContinuationToken }));
  t.match(second, { KeyCount: 1, IsTruncated: false, Contents: [{ Key: 'a/3' }] });
  await client.send(new DeleteObjectCommand({ Bucket, Key: 'a/1' }));
  await t.rejects(client.send(new GetObjectCommand({ Bucket, Key: 'a/1' })), { name: 'NoSuchKey' });
});

t.test('conditions of writes', async (t) => {
  const { client } = await setUp(t);
  const put = (conditions: object) =>
    client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'a', Body: 'one', ...conditions }));
  await t.rejects(put({ IfMatch: '"a"' }), { name: 'NoSuchKey' });
  const { ETag } = await put({ IfNoneMatch: '*' });
  await t.rejects(put({ IfNoneMatch: '*' }), { name: 'PreconditionFailed' });
  await t.rejects(put({ IfMatch: '"a"' }), { name: 'PreconditionFailed' });
  await put({ IfMatch: ETag });
});

t.test('parts are checked when the upload is completed', async (t) => {
  const { client } = await setUp(t);
  const target = { Bucket: BUCKET, Key: 'a' };
  const { UploadId } = await client.send(
    new CreateMultipartUploadCommand({ ...target, ChecksumAlgorithm: 'SHA256' }),
  );
  const upload = async (PartNumber: number, more = {}) => {
    const command = new UploadPartCommand({ ...target, UploadId, PartNumber, Body: 'one', ...more });
    const { ETag } = await client.send(command);
    return { ETag, PartNumber, ChecksumSHA256: createHash('sha256').update('one').digest('base64') };
  };
  await t.rejects(upload(1, { ChecksumAlgorithm: 'CRC32' }), { name: 'InvalidRequest' });
  const [one, two] = [
    await upload(1, { ChecksumAlgorithm: 'SHA256' }),
    await upload(2, { ChecksumAlgorithm: 'SHA256' }),
  ];
  const complete = (Parts: object[]) =>
    client.send(new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts } }));
  await t.rejects(complete([one, two]), { name: 'EntityTooSmall' });
  await t.rejects(complete([two, one]), { name: 'InvalidPartOrder' });
  await t.rejects(complete([{ ...one, ETag: '"a"' }]), { name: 'InvalidPart' });
  await t.rejects(complete([{ ...one, ChecksumSHA256: undefined }]), { name: 'InvalidPart' });
  await t.rejects(complete([{ ...one, PartNumber: 3 }]), { name: 'InvalidPart' });
  await t.rejects(complete([]), { name: 'MalformedXML' });
  await complete([two]);
  await t.rejects(complete([two]), { name: 'NoSuchUpload' });
});

t.test('a request that is not signed, or not all of it, is rejected', async (t) => {
  const { server, client } = await setUp(t);
  const statusOf = (headers: Record<string, string>, path = `/${BUCKET}/a`) =>
    new Promise((resolve, reject) => {
      request(`${server.url}${path}`, { headers }, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
  const hash = createHash('sha256').digest('hex');
  t.equal(await statusOf({}), 400, 'no hash of the body');
  t.equal(await statusOf({ 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }), 400, 'unsigned by http');
  t.equal(await statusOf({ 'x-amz-content-sha256': hash }), 403, 'no signature');
  const malformed = { 'x-amz-content-sha256': hash, authorization: 'AWS4-HMAC-SHA256 Credential=a/b' };
  t.equal(await statusOf(malformed), 400);
  // A header that is added on the way, and another path.
  const add = (change: (request: { headers: Record<string, string>; path: string }) => void) =>
    client.middlewareStack.add(
      (next) => (args) => {
        change(args.request as never);
        return next(args);
      },
      { step: 'finalizeRequest', priority: 'low', name: 'change', override: true },
    );
  const get = () => client.send(new GetObjectCommand({ Bucket: BUCKET, Key: 'a' }));
  add(({ headers }) => {
    headers['x-amz-meta-added'] = '1';
  });
  await t.rejects(get(), { name: 'AccessDenied' });
  add((changed) => {
    changed.path = `/${BUCKET}/b`;
  });
  await t.rejects(get(), { name: 'SignatureDoesNotMatch' });
  add(({ headers }) => {
    headers['x-amz-date'] = '20200101T000000Z';
  });
  await t.rejects(get(), { name: 'AccessDenied' });
});

t.test('malformed chunks are rejected', async (t) => {
  const { server, client, stored } = await setUp(t);
  const bodies = [
    'zz\r\n',
    '3\r\nabcd\r\n0\r\n\r\n',
    `${'1'.repeat(2000)}\r\n`,
    '3\r\nabc\r\n0\r\nnothing\r\n\r\n',
    '3\r\nab',
  ];
  for (const body of bodies) {
    client.middlewareStack.add(
      (next) => (args) => {
        const changed = args.request as { body: string; headers: Record<string, string> };
        changed.body = body;
        changed.headers['content-length'] = String(body.length);
        changed.headers['x-amz-decoded-content-length'] = '3';
        changed.headers['x-amz-content-sha256'] = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';
        changed.headers['x-amz-trailer'] = 'x-amz-checksum-crc32';
        return next(args);
      },
      { step: 'build', priority: 'low', name: 'change', override: true },
    );
    const put = client.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'a', Body: 'abc' }));
    await t.rejects(
      put,
      { name: /^(?:InvalidRequest|IncompleteBody|BadDigest)$/ },
      JSON.stringify(body.slice(0, 20)),
    );
  }
  t.equal(stored?.size, 0);
  t.equal(server.requests.length, bodies.length);
});
