/** What every store of objects must do as a destination of exports while its network or host fails. */
import type { IncomingMessage } from 'node:http';
import type { Test } from 'tap';
import { DestinationError } from '../../../src/server/exports/destinations/destination.js';
import {
  answerRaw,
  cutAfter,
  type Fault,
  hang,
  isMethod,
  loseAnswer,
  refuse,
  slowly,
} from '../breaking/fault-proxy.js';
import { control, largeObject, textObject } from './export-objects.js';
import type { StoreScene } from './store-cases.js';

const MIB = 1024 * 1024;
const NAME = 'copies/exp/live/2026/01/02/btc.jsonl';
const SHORT = { idleMs: 400, answerMs: 800 };

/** A fault of the first request that matches, and what the line for the owner says. */
type Case = { title: string; matches?: (request: IncomingMessage) => boolean; fault: Fault; says: RegExp };

const HOSTILE: readonly Case[] = [
  {
    title: 'an endless header',
    fault: answerRaw('HTTP/1.1 200 OK\r\nx: ', { forever: 'a'.repeat(4096) }),
    says: /headers that are too large/,
  },
  {
    title: 'endless headers',
    fault: answerRaw('HTTP/1.1 200 OK\r\n', { forever: 'x: y\r\n'.repeat(500) }),
    says: /headers that are too large/,
  },
  {
    title: 'an endless body',
    matches: isMethod('PUT'),
    fault: answerRaw('HTTP/1.1 403 Forbidden\r\ncontent-length: 999999999\r\n\r\n', {
      forever: 'a'.repeat(65_536),
    }),
    says: /answer that is too large/,
  },
  {
    title: 'interim responses for ever',
    fault: answerRaw('', { forever: 'HTTP/1.1 103 Early Hints\r\n\r\n' }),
    says: /did not answer within|made no progress/,
  },
  { title: 'what is not HTTP', fault: answerRaw('SSH-2.0-OpenSSH_9.2\r\n'), says: /not HTTP/ },
  {
    title: 'broken JSON and XML',
    fault: refuse(400, { 'content-type': 'application/xml' }, '<?xml <Error><Code>{"error":'),
    says: /refused the request/,
  },
  {
    title: 'an error of lines and controls',
    fault: refuse(500, {}, `<Message>a\u001b[31m\nb${'c'.repeat(9000)}</Message>`),
    says: /failed/,
  },
  { title: 'a redirect', fault: refuse(302, { location: 'http://169.254.169.254/' }), says: /redirects/ },
  {
    title: 'a permanent redirect',
    fault: refuse(308, { location: 'http://169.254.169.254/' }),
    says: /redirects|no generation/,
  },
];

const FAULTS: readonly Case[] = [
  {
    title: 'a host that does not answer',
    fault: hang,
    says: /did not answer within 0.8 s|made no progress for 0.4 s/,
  },
  {
    title: 'a host that stalls in the middle of an upload',
    matches: isMethod('PUT'),
    fault: hang,
    says: /made no progress for 0.4 s/,
  },
  {
    title: 'a connection cut in the middle of an upload',
    matches: isMethod('PUT'),
    fault: cutAfter(100_000),
    says: /closed the connection/,
  },
  {
    title: 'a store that is full',
    matches: isMethod('PUT'),
    fault: refuse(
      507,
      { 'x-ms-error-code': 'InsufficientStorage' },
      '{"error":{"errors":[{"reason":"quotaExceeded"}],"message":"The quota is used up."}}',
    ),
    says: /full|quota/,
  },
];

/** Runs the cases, each with a scene of its own. */
export function testFaults(t: Test, makeScene: (t: Test) => Promise<StoreScene>): void {
  for (const { title, matches = () => true, fault, says } of [...HOSTILE, ...FAULTS]) {
    t.test(`fails with a line for the owner: ${title}`, async (t) => {
      const { proxy, open, look, secrets } = await makeScene(t);
      const destination = await open({ limits: SHORT, partBytes: 16 * MIB });
      void proxy.breakNext(matches, fault);
      const error = await destination.write(largeObject(NAME, 9 * MIB), control()).catch((thrown) => thrown);
      assertLine(t, error, { says, secrets });
      t.equal(await look(NAME), undefined);
      await destination.close();
    });
  }

  for (const status of [429, 503]) {
    t.test(`hands on Retry-After of ${status}`, async (t) => {
      const { proxy, open, secrets } = await makeScene(t);
      const destination = await open();
      void proxy.breakNext(isMethod('PUT'), refuse(status, { 'retry-after': '7' }));
      const error = await destination.write(textObject(NAME, 'one'), control()).catch((thrown) => thrown);
      assertLine(t, error, { says: /throttles/, secrets });
      t.equal(error.retryAfterMs, 7000);
    });
  }

  t.test('an upload whose answer is lost is found as written', async (t) => {
    const { proxy, open, look, secrets } = await makeScene(t);
    const destination = await open();
    void proxy.breakNext(isMethod('PUT'), loseAnswer);
    const error = await destination.write(textObject(NAME, 'one'), control()).catch((thrown) => thrown);
    assertLine(t, error, { says: /closed the connection/, secrets });
    t.match(await look(NAME), { revision: '1' });
    const uploads = proxy.requests.filter((request) => request.startsWith('PUT')).length;
    t.same(await destination.write(textObject(NAME, 'one'), control()), { outcome: 'written' });
    t.equal(proxy.requests.filter((request) => request.startsWith('PUT')).length, uploads);
  });

  t.test('a slow upload that makes progress goes on', async (t) => {
    const { proxy, open, look } = await makeScene(t);
    const destination = await open({ limits: { idleMs: 400, answerMs: 60_000 }, partBytes: 64 * MIB });
    void proxy.breakNext(isMethod('PUT'), slowly(64 * 1024, 10));
    await destination.write(largeObject(NAME, 16 * MIB), control());
    t.match(await look(NAME), { bytes: 16 * MIB });
  });

  t.test('a host that is gone', async (t) => {
    const { proxy, open, secrets } = await makeScene(t);
    const destination = await open();
    await proxy.close();
    const error = await destination.write(textObject(NAME, 'one'), control()).catch((thrown) => thrown);
    assertLine(t, error, { says: /refuses the connection/, secrets });
  });
}

/** Asserts that an error is one line for the owner of a destination, without a secret. */
export function assertLine(
  t: Test,
  error: unknown,
  { says, secrets }: { says: RegExp; secrets: readonly string[] },
): void {
  t.type(error, DestinationError);
  const { message, cause } = error as DestinationError;
  t.match(message, says);
  t.notMatch(message, /[\p{C}]/u);
  t.ok(message.length <= 500, `${message.length} characters`);
  t.equal(cause, undefined);
  for (const secret of secrets) t.notOk(message.includes(secret), 'no secret');
}
