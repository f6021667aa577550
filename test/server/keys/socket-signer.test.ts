/** Keys that another process holds: what it may answer, and what happens while it is away. */
import { generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import t from 'tap';
import { ECDSA_P256, openSocketSigner } from '../../../src/server/keys/socket/socket-signer.js';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { frame, startSigningProcess } from '../../support/servers/signing-process.js';
import { until } from '../../support/until.js';
import { creation } from '../rpc/samples.js';

const p256 = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const own = p256();
const keys = {
  live: own.privateKey,
  test: p256().privateKey,
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
};

t.test('concurrent requests all return signatures of the key', async (t) => {
  const process = await startSigningProcess(t, keys);
  const signer = await openSocketSigner({ socketPath: process.path, keyId: 'live' }, ECDSA_P256);
  t.teardown(signer.close);
  t.same(signer.spki, own.publicKey.export({ type: 'spki', format: 'der' }));
  const messages = Array.from({ length: 100 }, (_, i) => randomBytes(i * 30));
  const signatures = await Promise.all(messages.map((message) => signer.sign(message)));
  for (const [i, signature] of signatures.entries()) {
    t.ok(verify('sha256', messages[i]!, { key: own.publicKey, dsaEncoding: 'der' }, signature));
  }
  await signer.check();
});

t.test('a process that is unavailable or lacks the key is reported in one line', async (t) => {
  const process = await startSigningProcess(t, keys);
  const open = (keyId: string) => openSocketSigner({ socketPath: process.path, keyId }, ECDSA_P256);
  const start = `the signing process at ${process.path} cannot sign with`;
  await t.rejects(open('none'), { message: `${start} none: it refuses: there is no key none` });
  await t.rejects(open('p384'), { message: `${start} p384: its key is not an ECDSA P-256 key in SPKI` });
  const signer = await open('live');
  t.teardown(signer.close);
  await process.stop();
  await t.rejects(signer.sign(Buffer.from('x')), {
    message: /^the signing process at .* cannot sign with live: /,
  });
  await t.rejects(signer.check(), { message: /: connect ENOENT / });
  await t.rejects(open('live'), { message: `${start} live: connect ENOENT ${process.path}` });
  await process.start();
  t.ok(await signer.sign(Buffer.from('x')), 'it is used again when it is back');
});

t.test('hostile answers are rejected', async (t) => {
  const process = await startSigningProcess(t, keys);
  const signer = await openSocketSigner({ socketPath: process.path, keyId: 'live' }, ECDSA_P256);
  t.teardown(signer.close);
  const long = Buffer.alloc(8, 255);
  const cases: [answer: Record<string, string> | Buffer, reason: RegExp][] = [
    [{ error: `no\n\u001b[31m${'x'.repeat(1_000)}` }, /it refuses: no\?\?\[31mx{100,}$/],
    [{}, /its answer has no signature in base64$/],
    [{ signature: '?' }, /its answer has no signature in base64$/],
    [{ signature: '' }, /its signature is not valid$/],
    [{ signature: randomBytes(70).toString('base64') }, /its signature is not valid$/],
    [long, /it answers with a frame that is too long$/],
    [Buffer.concat([frame({ signature: 'AA==' }), frame({})]), /not valid$|without a question$/],
    [Buffer.from('\0\0\0\u0002{}'), /its answer has no signature|JSON object of texts$/],
    [Buffer.from('\0\0\0\u0002[]'), /it answers with a frame that is not a JSON object of texts$/],
    [Buffer.from('\0\0\0\u0004null'), /JSON object of texts$/],
    [Buffer.from('\0\0\0\u0008{"a": 1}'), /JSON object of texts$/],
    [Buffer.from('\0\0\0\u0003{"a'), /JSON object of texts$/],
  ];
  for (const [answer, reason] of cases) {
    process.manner = () => answer;
    await t.rejects(signer.sign(Buffer.from('x')), { message: reason });
    process.manner = (_, usual) => usual;
    t.ok(await signer.sign(Buffer.from('x')), 'the next one is good');
  }
  process.manner = (request, usual) => (request.op === 'sign' ? undefined : usual);
  const silent = Array.from({ length: 1_001 }, () => signer.sign(Buffer.from('x')));
  await t.rejects(silent[1_000]!, { message: /: 1000 requests wait for it$/ });
  const ends = await Promise.allSettled(silent.slice(0, 1_000));
  t.ok(ends.every(({ status }) => status === 'rejected'));
  t.match(ends[0], { reason: { message: /: it does not answer within 3000 ms$/ } });
  t.match(await signer.sign(Buffer.from('x')).catch((error: Error) => error.message), /does not answer/);
});

t.test('a service whose signing process is unavailable accepts no submission and loses none', async (t) => {
  const process = await startSigningProcess(t, keys);
  const DSSE_KEY_FILE = `live=${process.setting('live')},test=${process.setting('test')}`;
  const app = await startApp(t, { env: { DSSE_KEY_FILE } });
  const { key } = await newKey(app);
  const create = (digit: string, idempotencyKey: string) =>
    app.rest('/v1/attestations', {
      apiKey: key,
      body: creation(digit.repeat(64)),
      headers: { 'idempotency-key': idempotencyKey },
    });
  t.equal((await create('a', 'first')).status, 201);
  await process.stop();
  const refused = await create('b', 'second');
  t.match(refused, { status: 503, json: { error: { code: 'service.unavailable' } } });
  t.match(refused.headers['retry-after'], /^\d+$/);
  t.equal((await create('a', 'first')).status, 503, 'a repetition signs again before it is known to be one');
  await process.start();
  await until('it signs again', async () => (await create('b', 'second')).status === 201);
  await app.drain();
  const { json } = await app.rest('/v1/attestations', { apiKey: key });
  t.match(json, { data: [{ status: 'witnessed' }, { status: 'witnessed' }] });
});
