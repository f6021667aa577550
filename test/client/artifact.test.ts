/** Artifacts that are hashed and submitted. */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, openAsBlob } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { ValidationMode } from '../../gen/attestation/v1/attestations_pb.js';
import { hashArtifact } from '../../src/client/hash.js';
import { all, clientOf, failing, METADATA } from './clients.js';

const READ_BEFORE = { name: 'TypeError', message: /read before/ };

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

t.test('a stream that was read before, all or a part of it, is not submitted', async (t) => {
  const { baseUrl, contexts } = await failing(t);
  const { submitFile, listByFile } = clientOf(baseUrl).client.attestations;
  const path = join(t.testdir({ artifact: 'the artifact' }), 'artifact');
  const pieces = async function* () {
    yield Buffer.from('the ');
    yield Buffer.from('artifact');
  };
  const streams: Record<string, () => AsyncIterable<Uint8Array> & object> = {
    file: () => createReadStream(path),
    'node stream': () => Readable.from(pieces()),
    'web stream': () => new Blob(['the artifact']).stream(),
    generator: pieces,
  };
  for (const [what, open] of Object.entries(streams)) {
    const ended = open();
    for await (const _ of ended);
    await t.rejects(submitFile(ended, { metadata: METADATA }), READ_BEFORE, `${what}, ended`);
    const hashed = open();
    await hashArtifact(hashed);
    await t.rejects(submitFile(hashed, { metadata: METADATA }), READ_BEFORE, `${what}, hashed`);
    await t.rejects(all(listByFile(hashed)), READ_BEFORE, `${what}, to find`);
    const twice = open();
    const both = [hashArtifact(twice), hashArtifact(twice)] as const;
    await t.rejects(both[1], READ_BEFORE, `${what}, at the same time`);
    await both[0];
    if (what === 'generator') continue;
    const begun = open();
    for await (const _ of begun) break;
    await t.rejects(submitFile(begun, { metadata: METADATA }), TypeError, `${what}, begun`);
  }
  t.equal(contexts.length, 0);
});

t.test('what can be read again may be, and what has lost bytes is an error', async (t) => {
  const sha256 = createHash('sha256').update('the artifact').digest('hex');
  const path = join(t.testdir({ artifact: 'the artifact' }), 'artifact');
  const again = {
    async *[Symbol.asyncIterator]() {
      yield Buffer.from('the artifact');
    },
  };
  for (const source of [
    new Blob(['the artifact']),
    await openAsBlob(path),
    path,
    Buffer.from('the artifact'),
    again,
  ]) {
    for (let i = 0; i < 2; i++) t.equal(await hashArtifact(source), sha256);
  }
  const changed = await openAsBlob(path);
  await appendFile(path, ' and more');
  await t.rejects(hashArtifact(changed));
  const short = Object.defineProperty(new Blob(['abc']), 'size', { value: 4 });
  await t.rejects(hashArtifact(short), { name: 'TypeError', message: /^3 of the 4 bytes of the Blob/ });
  const transferred = new Uint8Array([1, 2, 3]);
  structuredClone(transferred.buffer, { transfer: [transferred.buffer] });
  await t.rejects(hashArtifact(transferred), { name: 'TypeError', message: /buffer was transferred/ });
});

t.test('what is no artifact is a TypeError that names the kinds of artifact', async (t) => {
  for (const source of [
    undefined,
    null,
    7,
    {},
    [],
    [Buffer.from('a')],
    new ArrayBuffer(3),
    new Date(),
    new Map(),
  ]) {
    const error = { name: 'TypeError', message: /^an artifact is a path, a Uint8Array, a Blob or a stream/ };
    await t.rejects(hashArtifact(source as never), error);
  }
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
  const read = new Blob([bytes]).stream();
  t.equal(await new Response(read).text().then(() => 'read'), 'read');
  await t.rejects(hashArtifact(read), READ_BEFORE);
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

t.test('after the signal no source is opened', async (t) => {
  const signal = AbortSignal.abort(new Error('enough'));
  let isOpened = false;
  const source = async function* () {
    isOpened = true;
    yield new Uint8Array(1);
  };
  await t.rejects(hashArtifact(source(), { signal }), { message: 'enough' });
  t.notOk(isOpened);
});

t.test('an empty file has the SHA-256 of no bytes', async (t) => {
  const { baseUrl } = await failing(t);
  const { client } = clientOf(baseUrl);
  const file = join(t.testdir({ empty: '' }), 'empty');
  const { artifact } = await client.attestations.submitFile(file, { metadata: METADATA });
  t.equal(artifact?.sha256, createHash('sha256').digest('hex'));
});
