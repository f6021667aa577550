/** Artifacts that are hashed and submitted. */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { ValidationMode } from '../../gen/attestation/v1/attestations_pb.js';
import { hashArtifact } from '../../src/client/hash.js';
import { clientOf, failing, METADATA } from './clients.js';

t.test('submitting a file of any supported type sends its hash', async (t) => {
  const bytes = randomBytes(3 * 1024 * 1024 + 17);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const dir = t.testdir({ artifact: bytes });
  const { baseUrl } = await failing(t);
  const { client } = clientOf(baseUrl);
  const pieces = async function* () {
    yield bytes.subarray(0, 5);
    yield bytes.subarray(5);
  };
  for (const [form, source] of [
    ['path', join(dir, 'artifact')],
    ['bytes', bytes],
    ['blob', new Blob([bytes])],
    ['node stream', Readable.from(pieces())],
    ['web stream', new Blob([bytes]).stream()],
    ['generator', pieces()],
  ] as const) {
    let hashed = 0;
    const submission = await client.attestations.submitFile(source, {
      metadata: METADATA,
      validation: ValidationMode.LENIENT,
      onBytes: (count) => {
        hashed += count;
      },
    });
    t.equal(submission.artifact?.sha256, sha256, form);
    t.equal(hashed, bytes.length, form);
    t.same(submission.metadata, METADATA);
  }
});

t.test('an unreadable artifact is not submitted', async (t) => {
  const { baseUrl, contexts } = await failing(t);
  const { client } = clientOf(baseUrl);
  const options = { metadata: METADATA };
  await t.rejects(client.attestations.submitFile('/nowhere/at/all', options), { code: 'ENOENT' });
  await t.rejects(client.attestations.submitFile(t.testdir(), options), { code: 'EISDIR' });
  const text = Readable.from(['text']);
  await t.rejects(client.attestations.submitFile(text, options), TypeError);
  const signal = AbortSignal.abort(new Error('enough'));
  await t.rejects(client.attestations.submitFile(Buffer.from('a'), { ...options, signal }), {
    message: 'enough',
  });
  t.equal(contexts.length, 0);
});

t.test('without Node, artifacts are hashed and paths are rejected', async (t) => {
  const { getBuiltinModule } = process;
  t.teardown(() => Object.assign(process, { getBuiltinModule }));
  Object.assign(process, { getBuiltinModule: undefined });
  const bytes = randomBytes(100_000);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  t.equal(await hashArtifact(new Blob([bytes])), sha256);
  t.equal(await hashArtifact(new Blob([bytes]).stream()), sha256);
  t.equal(await hashArtifact(bytes), sha256);
  await t.rejects(hashArtifact('/etc/hostname'), TypeError);
});

t.test('a stream that is not read to its end is cancelled', async (t) => {
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(1)),
    cancel: () => {
      cancelled = true;
    },
  });
  const stop = new AbortController();
  const onBytes = () => stop.abort(new Error('enough'));
  await t.rejects(hashArtifact(stream, { signal: stop.signal, onBytes }), { message: 'enough' });
  t.ok(cancelled);
});

t.test("the caller's signal ends the hashing of a source that is stuck", async (t) => {
  const controller = new AbortController();
  const asked = async function* () {
    yield Buffer.from('a');
    controller.abort(new Error('enough'));
    await new Promise(() => {});
  };
  const stuck = new ReadableStream(
    { pull: () => controller.abort(new Error('enough')) },
    { highWaterMark: 0 },
  );
  for (const source of [asked(), stuck]) {
    await t.rejects(hashArtifact(source, { signal: controller.signal }), { message: 'enough' });
  }
  await t.rejects(hashArtifact(Buffer.from('a'), { signal: controller.signal }), { message: 'enough' });
});

t.test('an empty file has the SHA-256 of no bytes', async (t) => {
  const { baseUrl } = await failing(t);
  const { client } = clientOf(baseUrl);
  const file = join(t.testdir({ empty: '' }), 'empty');
  const { artifact } = await client.attestations.submitFile(file, { metadata: METADATA });
  t.equal(artifact?.sha256, createHash('sha256').digest('hex'));
});
