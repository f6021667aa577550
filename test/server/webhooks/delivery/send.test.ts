import { readFile } from 'node:fs/promises';
import t from 'tap';
import { guardedConnector } from '../../../../src/server/net/destination.js';
import { findSecretBytes, signatureHeaders } from '../../../../src/server/webhooks/delivery/sign.js';
import { makeServerTls } from '../../../support/certificates/server-tls.js';
import {
  answering,
  type Behaviour,
  startReceiver as openReceiver,
  type Received,
  verdicts,
} from '../../../support/webhooks/receiver.js';
import { EVENT, KEYS, NOW_MS, SECRETS, senderOf, startRaw } from '../../../support/webhooks/sending.js';

const { tls, caFile } = await makeServerTls(t);
const ca = await readFile(caFile, 'utf8');

/** An endpoint that knows the secrets. */
async function startReceiver(...args: Parameters<typeof openReceiver>): ReturnType<typeof openReceiver> {
  const receiver = await openReceiver(...args);
  for (const secret of SECRETS) receiver.trust(secret);
  return receiver;
}

t.test('a delivery over https is the event, signed by each secret', async (t) => {
  const receiver = await startReceiver(t, { tls });
  receiver.behave(answering(202, 'taken'));
  const { durationMs, ...result } = await senderOf(t, { ca })(`${receiver.url}?a=b`);
  t.same(result, { outcome: 'delivered', status: 202, answer: 'taken', gone: false });
  t.ok(Number.isInteger(durationMs) && durationMs >= 0, `${durationMs} ms, though the clock stands still`);
  const [one] = receiver.received as [Received];
  const { path, headers, body } = one;
  t.equal(path, '/hook?a=b');
  t.equal(body, JSON.stringify(EVENT));
  t.match(headers, {
    'content-type': 'application/json',
    'user-agent': /^attestation-service\/.* \(webhooks\)$/,
  });
  for (const secret of SECRETS) {
    t.same(verdicts(secret, one), [true, true]);
  }
});

t.test('the signed content and the headers are as documented', async (t) => {
  const headers = signatureHeaders(KEYS, { id: 'evt_1', timestamp: 1_772_366_400, body: '{}' });
  t.match(headers, {
    'service-signature': /^t=1772366400,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/,
    'webhook-id': 'evt_1',
    'webhook-timestamp': '1772366400',
    'webhook-signature': /^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/,
  });
  for (const secret of [
    '',
    'whsec_',
    'whsec_AAAA',
    `whsec_${'A'.repeat(88)}`,
    `whsec_${'A'.repeat(33)}`,
    'A'.repeat(44),
  ]) {
    t.equal(findSecretBytes(secret), undefined, secret);
  }
});

t.test('any other status is a failure with its error and its Retry-After', async (t) => {
  const receiver = await startReceiver(t);
  const send = senderOf(t);
  for (const [behaviour, expected] of [
    [
      answering(500, 'broken'),
      { status: 500, error: 'the endpoint answered 500', answer: 'broken', gone: false },
    ],
    [answering(410), { status: 410, gone: true }],
    [answering(503, '', { 'retry-after': '7' }), { status: 503, retryAfterMs: 7_000 }],
    [answering(429, '', { 'retry-after': new Date(NOW_MS + 9_750).toUTCString() }), { retryAfterMs: 9_750 }],
    [answering(503, '', { 'retry-after': 'Sun, 01 Mar 2020 12:00:10 GMT' }), { retryAfterMs: 0 }],
    [answering(503, '', { 'retry-after': 'soon' }), { retryAfterMs: undefined }],
    [answering(503, '', { 'retry-after': '-7' }), { retryAfterMs: 0 }],
    [answering(503, '', { 'retry-after': '9'.repeat(400) }), { retryAfterMs: Number.POSITIVE_INFINITY }],
  ] as const) {
    receiver.behave(behaviour);
    t.match(await send(receiver.url), { outcome: 'failed', ...expected });
  }
});

t.test('a redirect is not followed', async (t) => {
  const target = await startReceiver(t);
  const receiver = await startReceiver(t);
  const send = senderOf(t);
  for (const status of [301, 302, 303, 307, 308]) {
    receiver.behave(answering(status, '', { location: target.url }));
    t.match(await send(receiver.url), { outcome: 'failed', status, error: /redirects are not followed/ });
  }
  t.equal(target.received.length, 0);
});

t.test('of an answer the first 2 KiB are kept, however long it is', async (t) => {
  const receiver = await startReceiver(t);
  let isCut = false;
  const endless: Behaviour = (response) => {
    response.on('close', () => {
      isCut = true;
    });
    const more = () => {
      while (response.write('x'.repeat(1_000)));
      response.once('drain', more);
    };
    more();
  };
  receiver.behave(endless);
  const { outcome, answer } = await senderOf(t, { ca })(receiver.url);
  t.equal(outcome, 'delivered');
  t.equal(answer, 'x'.repeat(2_048));
  t.ok(isCut || receiver.open.now <= 1);
  receiver.behave(answering(200, Buffer.from([0xff, 0x41, 0xc3]).toString('latin1')));
  t.match(await senderOf(t, { ca })(receiver.url), { outcome: 'delivered' });
});

t.test(
  'an endpoint that does not answer, or byte by byte, holds nothing for longer than the time',
  async (t) => {
    const receiver = await startReceiver(t);
    const send = senderOf(t, { timeoutMs: 300 });
    receiver.behave(() => {});
    t.match(await send(receiver.url), { outcome: 'failed', error: 'no answer within 0.3 s', answer: '' });
    const trickling: Behaviour = (response) => {
      response.write('a');
      const timer = setInterval(() => response.write('b'), 20);
      response.on('close', () => clearInterval(timer));
    };
    receiver.behave(trickling);
    t.match(await send(receiver.url), { outcome: 'delivered', status: 200, answer: /^ab*$/ });
    const headers = await startRaw(t, (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const timer = setInterval(() => socket.write('x: y\r\n'), 20);
      socket.on('close', () => clearInterval(timer));
    });
    t.match(await send(headers), { outcome: 'failed', error: 'no answer within 0.3 s' });
  },
);

t.test('an endpoint that breaks the connection, or answers nonsense, has failed', async (t) => {
  const receiver = await startReceiver(t);
  const send = senderOf(t);
  receiver.behave((response) => void response.socket?.resetAndDestroy());
  t.match(await send(receiver.url), { outcome: 'failed', error: /\S/, answer: '' });
  receiver.behave((response) => {
    response.writeHead(200, { 'content-length': '100' }).write('half');
    response.socket?.end();
  });
  t.match(await send(receiver.url), { outcome: 'delivered', answer: 'half' }, 'the status had come');
  const raw = (text: string) => startRaw(t, (socket) => void socket.end(text));
  t.match(await send(await raw('SSH-2.0\r\n\r\n')), { outcome: 'failed', error: /\S/ });
  const huge = `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`;
  t.match(await send(await raw(huge)), { outcome: 'failed', error: /\S/ });
  await receiver.close();
  t.match(await send(receiver.url), { outcome: 'failed', error: /ECONNREFUSED/ });
});

t.test('an endpoint with an invalid certificate does not get the event', async (t) => {
  const receiver = await startReceiver(t, { tls });
  const distrusting = senderOf(t, { connect: guardedConnector({ allowInsecure: true }) });
  t.match(await distrusting(receiver.url), { outcome: 'failed', error: /certificate/ });
  const named = receiver.url.replace('127.0.0.1', 'hook.example');
  t.match(await senderOf(t, { ca })(named), { outcome: 'failed', error: /hook\.example/ });
  const plain = await startReceiver(t);
  t.match(await senderOf(t, { ca })(plain.url.replace('http:', 'https:')), {
    outcome: 'failed',
    error: /\S/,
  });
  t.equal(receiver.received.length + plain.received.length, 0);
  const expired = await makeServerTls(t, 'IP:127.0.0.1', -1);
  const late = await startReceiver(t, { tls: expired.tls });
  const lateCa = await readFile(expired.caFile, 'utf8');
  const trusting = senderOf(t, { connect: guardedConnector({ allowInsecure: true, ca: lateCa }) });
  t.match(await trusting(late.url), { outcome: 'failed', error: /expired/ });
  t.equal(late.received.length, 0);
  const right = await makeServerTls(t, 'DNS:hook.example');
  const byName = await startReceiver(t, { tls: right.tls });
  const connect = guardedConnector({
    allowInsecure: true,
    ca: await readFile(right.caFile, 'utf8'),
    resolve: async () => ['127.0.0.1'],
  });
  const url = byName.url.replace('127.0.0.1', 'hook.example');
  t.match(await senderOf(t, { connect })(url), { outcome: 'delivered', status: 204 });
});

t.test('a forbidden address is not called, even if it was saved', async (t) => {
  const receiver = await startReceiver(t, { tls });
  const strict = senderOf(t, { connect: guardedConnector({ allowInsecure: false, ca }) });
  t.match(await strict(receiver.url), { outcome: 'failed', error: /not a public address/ });
  t.match(await strict('no url'), { outcome: 'failed', error: /\S/ });
  t.equal(receiver.received.length, 0);
});

t.test('deliveries to one endpoint share its connections, and an abort ends them', async (t) => {
  const receiver = await startReceiver(t);
  const send = senderOf(t);
  const ports = new Set<number>();
  receiver.behave((response) => {
    ports.add(response.socket?.remotePort ?? 0);
    response.writeHead(200).end('ok');
  });
  for (let i = 0; i < 5; i++) t.equal((await send(receiver.url)).outcome, 'delivered');
  t.ok(ports.size < 5, `${ports.size} connections`);
  await Promise.all(Array.from({ length: 200 }, () => send(receiver.url)));
  t.ok(receiver.open.most <= 64, `${receiver.open.most} at a time`);
  const stop = new AbortController();
  receiver.behave(() => stop.abort(new Error('the worker stops')));
  const stopped = senderOf(t, { aborting: stop.signal });
  for (let i = 0; i < 2; i++)
    t.match(await stopped(receiver.url), { outcome: 'failed', error: 'the worker stops' });
});
