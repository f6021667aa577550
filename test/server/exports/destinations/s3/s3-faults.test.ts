import t, { type Test } from 'tap';
import type { S3Options as OpenOptions } from '../../../../../src/server/exports/destinations/s3/s3.js';
import { type Fault, FULL } from '../../../../support/exports/s3/faults.js';
import {
  BUCKET,
  OWNER,
  objectOf,
  openBucket,
  randomContent,
  startStore,
  writing,
} from '../../../../support/exports/s3/fixture.js';

const MIB = 1024 * 1024;
const { signal } = new AbortController();

/** A bucket whose requests of one operation fail. */
async function failing(t: Test, operation: string, fault: Fault, options: OpenOptions = {}) {
  const server = await startStore(t);
  const bucket = await openBucket(t, server, {}, options);
  server.fail((request) => (request.operation === operation ? fault : undefined));
  return { server, bucket };
}

t.test("errors name the remedy of the bucket's owner", async (t) => {
  const cases: [operation: string, fault: Fault, message: RegExp][] = [
    [
      'PutObject',
      FULL,
      /^the store is full; make space .* attestations\/copies\/day\/batch.jsonl: QuotaExceeded/,
    ],
    ['PutObject', { kind: 'refuse', code: 'XMinioStorageFull', status: 507 }, /^the store is full/],
    [
      'PutObject',
      { kind: 'refuse', code: 'AccessDenied' },
      /^access is denied; allow s3:PutObject \(s3:PutObject attestations\/copies/,
    ],
    ['PutObject', { kind: 'refuse', code: 'KMS.DisabledException' }, /KMS key/],
    ['PutObject', { kind: 'refuse', code: 'EntityTooLarge' }, /objects of this size/],
    ['PutObject', { kind: 'refuse', code: 'Odd', status: 413 }, /objects of this size/],
    ['PutObject', { kind: 'refuse', code: 'RequestTimeTooSkewed' }, /clock differs/],
    ['PutObject', { kind: 'refuse', code: 'NotImplemented' }, /use another store/],
    ['PutObject', { kind: 'refuse', code: 'InternalError' }, /^the store failed/],
    [
      'PutObject',
      { kind: 'refuse', code: 'Odd' },
      /^the store refused \(.*: Odd: A fault of the test: Odd\.\)$/,
    ],
    ['PutObject', { kind: 'cut', afterBytes: 1 }, /closed the connection/],
    ['HeadObject', { kind: 'refuse', code: 'InternalError' }, /^the store failed \(s3:GetObject/],
    ['HeadObject', { kind: 'cut', afterBytes: 0 }, /closed the connection/],
    [
      'PutObject',
      { kind: 'refuse', code: 'PermanentRedirect', headers: { 'x-amz-bucket-region': 'eu-west-1' } },
      /^the bucket is in another region; set region to eu-west-1 /,
    ],
  ];
  for (const [operation, fault, message] of cases) {
    const { bucket } = await failing(t, operation, fault);
    const write = bucket.write(objectOf('one\n'), writing());
    await t.rejects(write, { name: 'DestinationError', message, retryAfterMs: undefined }, String(message));
  }
});

t.test("a throttled write rejects with the store's delay", async (t) => {
  const slowDown = (value: string): Fault => {
    return { kind: 'refuse', code: 'SlowDown', headers: { 'retry-after': value } };
  };
  const { server, bucket } = await failing(t, 'PutObject', slowDown('120'));
  await t.rejects(bucket.write(objectOf('one\n'), writing()), {
    message: /^the store throttles requests \(s3:PutObject/,
    retryAfterMs: 120_000,
  });
  server.fail(({ operation }) =>
    operation === 'PutObject' ? { kind: 'refuse', code: 'TooManyRequests', status: 429 } : undefined,
  );
  await t.rejects(bucket.write(objectOf('one\n'), writing()), {
    message: /throttles/,
    retryAfterMs: undefined,
  });
});

t.test('wrong settings are named', async (t) => {
  const server = await startStore(t, { region: 'eu-central-1' });
  const right = { region: 'eu-central-1' };
  const cases: [settings: Record<string, string>, message: RegExp][] = [
    [{}, /set region to eu-central-1/],
    [{ ...right, bucket: 'unknown-bucket' }, /^the bucket does not exist/],
    [{ ...right, accessKeyId: 'AKIANOBODY' }, /correct access_key_id/],
    [{ ...right, secretAccessKey: 'wrong/secret' }, /correct secret_access_key/],
  ];
  for (const [settings, message] of cases) {
    const bucket = await openBucket(t, server, settings);
    for (const work of [() => bucket.probe(signal), () => bucket.write(objectOf('one\n'), writing())]) {
      const error = await work().then(String, (error: Error) => error.message);
      t.match(error, message);
      t.notMatch(error, 'wrong/secret');
      t.notMatch(error, OWNER.secretAccessKey);
    }
  }
});

t.test('a store whose clock differs is written to by its own clock', async (t) => {
  const server = await startStore(t, { now: () => Date.now() - 3_600_000 });
  const bucket = await openBucket(t, server);
  t.strictSame(await bucket.write(objectOf('one\n'), writing()), { outcome: 'written' });
});

t.test('a write that was stored and not answered is written', async (t) => {
  const { server, bucket } = await failing(t, 'PutObject', { kind: 'cut-answer' });
  await t.rejects(bucket.write(objectOf('one\n'), writing()), /closed the connection/);
  server.fail(() => undefined);
  t.strictSame(await bucket.write(objectOf('one\n'), writing()), { outcome: 'written' });
  t.equal(server.requests.filter(({ operation }) => operation === 'PutObject').length, 1);
});

t.test('a store that was unavailable is written to when it is back', async (t) => {
  const server = await startStore(t);
  const bucket = await openBucket(t, server);
  await server.goAway();
  await t.rejects(bucket.write(objectOf('one\n'), writing()), /the host refuses the connection/);
  await server.comeBack();
  t.strictSame(await bucket.write(objectOf('one\n'), writing()), { outcome: 'written' });
});

t.test('a transfer without progress fails, before and after its last byte', async (t) => {
  for (const operation of ['HeadObject', 'PutObject']) {
    const { bucket } = await failing(t, operation, { kind: 'hang' }, { stallTimeoutMs: 300 });
    for (const bytes of [10, 32 * MIB]) {
      const write = bucket.write(objectOf(Buffer.alloc(bytes)), writing());
      await t.rejects(write, { name: 'DestinationError', message: /the host timed out/ });
    }
  }
});

t.test('a slow transfer that makes progress goes on', async (t) => {
  const fault: Fault = { kind: 'throttle', bytesPerSecond: 4 * MIB };
  // The transfer takes 6 s.
  const { server, bucket } = await failing(t, 'PutObject', fault, { stallTimeoutMs: 4_000 });
  const object = objectOf(randomContent(24 * MIB));
  t.strictSame(await bucket.write(object, writing()), { outcome: 'written' });
  t.equal(server.buckets.get(BUCKET)?.objects.get(object.name)?.bytes, 24 * MIB);
});

t.test('the signal ends a write at once', async (t) => {
  for (const operation of ['HeadObject', 'PutObject']) {
    const server = await startStore(t);
    const bucket = await openBucket(t, server);
    const controller = new AbortController();
    const reason = new Error('the lease is lost');
    server.fail((request) => {
      if (request.operation !== operation) return undefined;
      setImmediate(() => controller.abort(reason));
      return { kind: 'hang' };
    });
    const object = objectOf(Buffer.alloc(MIB));
    await t.rejects(bucket.write(object, writing(controller.signal)), reason);
    const count = server.requests.length;
    await t.rejects(bucket.write(object, writing(controller.signal)), reason);
    t.equal(server.requests.length, count, 'no request after it');
  }
});
