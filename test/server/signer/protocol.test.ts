/** The socket of `attest signer`: what clients may send, and what each kind of key may sign. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createOutageLogs } from '../../../src/server/core/outage-log.js';
import { frameReader } from '../../../src/server/keys/socket/socket-frames.js';
import { createAnswers } from '../../../src/server/signer/answer.js';
import { createSignerListener } from '../../../src/server/signer/listener.js';
import { openLogHistory } from '../../../src/server/signer/log-history.js';
import type { OpenKey } from '../../../src/server/signer/open-keys.js';
import { assertMaySign } from '../../../src/server/signer/policy.js';
import { frame } from '../../support/servers/signing-process.js';
import { until } from '../../support/until.js';

type Texts = Record<string, string>;

const dir = await mkdtemp(join(tmpdir(), 'attest-protocol-'));
t.teardown(() => rm(dir, { recursive: true }));
const quiet = { warn: () => {}, info: () => {}, error: () => {} };
let sockets = 0;

async function listenTo(t: Test, answer: (request: Texts) => Promise<Texts>) {
  const socketPath = join(dir, `${sockets++}.sock`);
  const warnings: unknown[] = [];
  const log = { warn: (fields: unknown) => void warnings.push(fields) };
  const listener = createSignerListener({ answer, log: log as never });
  await listener.listen({ socketPath, socketMode: 0o660 });
  t.teardown(listener.close);
  return { socketPath, listener, warnings };
}

function open(t: Test, path: string): Socket {
  const socket = connect(path);
  socket.on('error', () => {});
  t.teardown(() => void socket.destroy());
  return socket;
}

t.test('answers come in the order of the requests', async (t) => {
  const release: (() => void)[] = [];
  const { socketPath } = await listenTo(t, async ({ n = '' }) => {
    if (n === '0') await new Promise<void>((resolve) => release.push(resolve));
    return { n };
  });
  t.equal(statSync(socketPath).mode & 0o777, 0o660);
  const socket = open(t, socketPath);
  const read = frameReader();
  const got: string[] = [];
  socket.on('data', (chunk) => got.push(...read(chunk).map(({ n = '' }) => n)));
  const sent = ['0', '1', '2'].map((n) => frame({ n }));
  // Byte by byte, as a slow client does.
  for (const byte of Buffer.concat(sent)) socket.write(Buffer.of(byte));
  await until('all have come', async () => release.length === 1);
  t.same(got, []);
  release[0]?.();
  await until('all are answered', async () => got.length === 3);
  t.same(got, ['0', '1', '2']);
});

t.test('hostile frames end their connection, and no other', async (t) => {
  const { socketPath, warnings } = await listenTo(t, async (request) => request);
  const other = open(t, socketPath);
  const hostile = [
    Buffer.alloc(8, 255),
    Buffer.from([0, 1, 0, 1]),
    Buffer.from('\0\0\0\u0002[]'),
    Buffer.from('\0\0\0\u0004null'),
    Buffer.from('\0\0\0\u0008{"a": 1}'),
    Buffer.from('\0\0\0\u0003{"a'),
    Buffer.from('\0\0\0\0'),
    Buffer.concat([Buffer.from([0, 0, 0x4e, 0x20]), Buffer.from('{"a":'.repeat(4_000))]),
  ];
  for (const bytes of hostile) {
    const socket = open(t, socketPath);
    const closed = once(socket, 'close');
    socket.write(bytes);
    await closed;
  }
  t.equal(warnings.length, hostile.length);
  t.match(warnings[0], { reason: 'a frame that is too long' });
  const truncated = open(t, socketPath);
  truncated.end(frame({ a: 'b' }).subarray(0, 7));
  await once(truncated, 'close');
  const answered = once(other, 'data');
  other.write(frame({ a: 'b' }));
  t.same(frameReader()((await answered)[0] as Buffer), [{ a: 'b' }]);
});

t.test('a client that reads nothing, or asks too much, is not read either', async (t) => {
  let asked = 0;
  const waiting: (() => void)[] = [];
  const { socketPath, listener } = await listenTo(t, async () => {
    asked++;
    await new Promise<void>((resolve) => waiting.push(resolve));
    return { signature: 'x'.repeat(60_000) };
  });
  const socket = open(t, socketPath);
  socket.pause();
  for (let i = 0; i < 20_000; i++) socket.write(frame({ op: 'sign', data: 'x'.repeat(100) }));
  await until('a thousand are taken', async () => asked >= 1_000);
  const taken = asked;
  t.ok(taken < 2_000, `${taken} of 20,000: what one piece of data had, and no more`);
  for (const resolve of waiting.splice(0)) resolve();
  await new Promise((resolve) => setImmediate(resolve));
  t.ok(asked < 3_000, 'answers that nobody reads make room for no more');
  const closing = listener.close();
  socket.destroy();
  for (const resolve of waiting.splice(0)) resolve();
  await closing;
});

t.test('a socket that a killed process left is replaced, one that is served is not', async (t) => {
  const { socketPath } = await listenTo(t, async (request) => request);
  const second = createSignerListener({ answer: async (request) => request, log: quiet as never });
  await t.rejects(second.listen({ socketPath, socketMode: 0o600 }), /another process listens at/);
  const file = join(dir, 'file');
  writeFileSync(file, 'no socket');
  await t.rejects(second.listen({ socketPath: file, socketMode: 0o600 }));
  t.equal(statSync(file).size, 9, 'a file is left alone');
});

t.test('each kind of key signs what is of its purpose', async (t) => {
  const root = Buffer.alloc(32, 1).toString('base64');
  const good = {
    statements: ['DSSEv1 28 application/vnd.in-toto+json 2 {}'],
    tuf: ['{"_type":"snapshot",', '{"_type":"timestamp","a":1}'],
    receipts: ['\x84\x6aSignature1'],
    log: [`live.example.com\n5\n${root}\n`],
  } as const;
  const purposes = Object.keys(good) as (keyof typeof good)[];
  const bytes = (text: string) => Buffer.from(text, 'latin1');
  for (const purpose of purposes) {
    const key = { purpose, origin: 'live.example.com' };
    for (const other of purposes) {
      for (const text of good[other]) {
        if (purpose === other) t.doesNotThrow(() => assertMaySign(key, bytes(text)));
        else t.throws(() => assertMaySign(key, bytes(text)), /signs nothing else/);
      }
    }
    t.throws(() => assertMaySign(key, new Uint8Array()), /signs nothing else/);
  }
  const log = { purpose: 'log', origin: 'live.example.com' } as const;
  for (const text of [
    `live.example.com\n5\n${root}\nmore\n`,
    `live.example.com\n05\n${root}\n`,
    `live.example.com\n5\n${root}`,
    `live.example.com.evil\n5\n${root}\n`,
    `live.example.com\n9007199254740993\n${root}\n`,
    'live.example.com\n5\nAAAA\n',
  ])
    t.throws(() => assertMaySign(log, bytes(text)), /is for checkpoints of live.example.com/);
});

t.test('equal requests at once are signed once, others each', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  let signatures = 0;
  const key: OpenKey = {
    config: { name: 'log', purpose: 'log', origin: 'o', backend: {} as never, reference: {} as never },
    algorithm: 'ed25519',
    spki: publicKey.export({ type: 'spki', format: 'der' }),
    sign: async (data) => {
      signatures++;
      return sign(null, data, privateKey);
    },
  };
  const history = await openLogHistory(join(dir, 'history'));
  const outages = createOutageLogs(quiet, () => performance.now());
  const outcomes: string[] = [];
  const observe = (_: string, outcome: string) => void outcomes.push(outcome);
  const answer = createAnswers({ keys: [key], history, log: quiet, outages, observe });
  const ask = (size: number, fill = 1) => {
    const body = `o\n${size}\n${Buffer.alloc(32, fill).toString('base64')}\n`;
    return answer({ op: 'sign', key: 'log', data: Buffer.from(body).toString('base64') });
  };
  const same = await Promise.all([ask(1), ask(1), ask(1)]);
  t.equal(new Set(same.map(({ signature }) => signature)).size, 1);
  t.equal(signatures, 1);
  const forks = await Promise.all([ask(2, 1), ask(2, 2), ask(1)]);
  t.equal(
    forks.filter(({ signature }) => signature !== undefined).length,
    1,
    'one of two roots, and no lower size',
  );
  t.same(outcomes.filter((outcome) => outcome === 'rejected').length, 2);
  t.match(await answer({ op: 'sign', key: 'log', data: '?' }), { error: 'data is not base64' });
  t.match(await answer({ op: 'other', key: 'log' }), { error: /^op is not/ });
  t.match(await answer({ op: 'sign', key: 'none' }), { error: 'there is no key none' });
  t.match(await answer({}), { error: /^there is no key/ });
});
