import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { Agent } from 'undici';
import { toHex, utf8 } from '../../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../../src/proof/bytes/primitives.js';
import { parseBlockHeader, toDisplayHex } from '../../../../src/proof/opentimestamps/block-header.js';
import { bitcoinAttestations } from '../../../../src/proof/opentimestamps/checkpoint-timestamp.js';
import { parseOtsOf } from '../../../../src/proof/opentimestamps/detached-file.js';
import { attestationsOf } from '../../../../src/proof/opentimestamps/timestamp.js';
import { openTimestampsWitness } from '../../../../src/server/witnessing/clients/opentimestamps.js';
import type { PendingRequest, PollAnswer } from '../../../../src/server/witnessing/clients/witness.js';
import { mineHeader } from '../../../support/witnesses/opentimestamps/block.js';
import { type Calendar, startCalendar } from '../../../support/witnesses/opentimestamps/calendar.js';
import { startExplorer } from '../../../support/witnesses/opentimestamps/explorer.js';
import { runForeign } from '../../../support/witnesses/opentimestamps/foreign.js';

const body = utf8('live.example.org\n7\nq83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=\n');
const rootHash = 'abcdef1234567890abcdef1234567890abcdef1234567890abcdef1234567890';
const digest = sha256(body);
const checkpoint = {
  origin: 'live.example.org',
  treeSize: 7,
  rootHash,
  body,
  note: 'not looked at',
  coveredSize: 0,
  proveConsistency: () => Promise.reject(new Error('not looked at')),
};
const never = new AbortController().signal;
const MINUTE_MS = 60_000;

type Options = { min?: number; timeoutMs?: number; explorerUrl?: string };

function witnessOf(t: Test, calendars: readonly Calendar[], options: Options = {}) {
  const dispatcher = new Agent();
  t.teardown(() => dispatcher.destroy());
  const urls = calendars.map(({ url }) => url);
  const config = { name: 'bitcoin', calendars: urls, min: 1, timeoutMs: 10_000, ...options };
  const { ask, poll } = openTimestampsWitness({ dispatcher, randomBytes }, config);
  return {
    ask: (signal = never) => ask(checkpoint, signal),
    poll: (request: PendingRequest, signal = never) => poll!(request, signal),
  };
}

/** The stored form of a pending answer. */
function stored(answer: PollAnswer, ageMs = MINUTE_MS): PendingRequest {
  if (answer.type !== 'pending') throw new Error('the answer is not pending');
  const { state, detail } = answer;
  return { checkpoint, state, detail, ageMs };
}

async function startCalendars<const N extends string[]>(t: Test, ...names: N) {
  return Promise.all(names.map(() => startCalendar(t))) as Promise<{ [K in keyof N]: Calendar }>;
}

t.test('a request is pending at all calendars, and lands when one is in a block', async (t) => {
  const [a, b] = await startCalendars(t, 'a', 'b');
  const witness = witnessOf(t, [a, b]);
  const asked = await witness.ask();
  t.match(asked, {
    type: 'pending',
    pollAfterMs: MINUTE_MS,
    detail: {
      status: 'pending',
      calendars: [
        { url: a.url, status: 'pending' },
        { url: b.url, status: 'pending' },
      ],
    },
  });
  const uris = attestationsOf(parseOtsOf(digest, stored(asked).state)).map((one) => one.attestation);
  t.strictSame(new Set(uris), new Set([a, b].map(({ url }) => ({ kind: 'pending', uri: url }))));

  const waiting = await witness.poll(stored(asked));
  t.match(waiting, {
    type: 'pending',
    detail: { calendars: [{ reason: 'Pending confirmation in Bitcoin blockchain' }, {}] },
  });
  t.strictSame(stored(waiting).state, stored(asked).state);

  const { header, height } = b.mine(850_000);
  const landed = await witness.poll(stored(waiting));
  const { merkleRoot } = parseBlockHeader(header);
  if (landed.type !== 'landed') throw new Error('it has not landed');
  t.strictSame(landed.detail, {
    status: 'bitcoin',
    bitcoin_height: height,
    bitcoin_merkle_root: toDisplayHex(merkleRoot),
  });
  const evidence = parseOtsOf(digest, landed.evidence);
  t.equal(attestationsOf(evidence).length, 1, 'the evidence has nothing but the path to the block');
  t.match(bitcoinAttestations(evidence), [{ height, merkleRoot }]);
  t.strictSame(await witness.poll(stored(waiting)), landed, 'polling again makes the same evidence');

  const file = toHex(landed.evidence);
  const { time } = parseBlockHeader(header);
  const [foreign] = await runForeign([['verify', [file, toHex(header)]]]);
  t.strictSame(foreign, { times: [time.getTime() / 1_000] }, 'and others confirm it');
});

t.test('requests have nonces, so that calendars see nothing of the log', async (t) => {
  const [a] = await startCalendars(t, 'a');
  const witness = witnessOf(t, [a]);
  const states = [await witness.ask(), await witness.ask()].map((asked) => stored(asked).state);
  const messages = states.map((state) => parseOtsOf(digest, state).steps[0]!.timestamp.steps[0]!.timestamp);
  t.strictSame(messages[0]!.message, messages[1]!.message);
  t.notSame(messages[0]!.steps[0]!.operation.argument, messages[1]!.steps[0]!.operation.argument);
  t.equal(messages[0]!.steps[0]!.operation.argument!.length, 16);
});

t.test('polls come after a minute, then after as long as the request is old, at most an hour', async (t) => {
  const [a] = await startCalendars(t, 'a');
  const witness = witnessOf(t, [a]);
  const asked = await witness.ask();
  const intervals = await Promise.all(
    [0, 1, 2, 4, 30, 60, 40_000].map(async (minutes) => {
      const answer = await witness.poll(stored(asked, minutes * MINUTE_MS));
      return answer.type === 'pending' && answer.pollAfterMs / MINUTE_MS;
    }),
  );
  t.strictSame(intervals, [1, 1, 2, 4, 30, 60, 60]);
});

t.test('a request is abandoned after 30 days, unless it lands', async (t) => {
  const [a] = await startCalendars(t, 'a');
  const witness = witnessOf(t, [a]);
  const old = stored(await witness.ask(), 31 * 24 * 60 * MINUTE_MS);
  const reason = 'no Bitcoin block attests to it after 30 days';
  t.strictSame(await witness.poll(old), { type: 'abandoned', reason });
  a.mine(7);
  t.match(await witness.poll(old), { type: 'landed' });
});

t.test('enough calendars must accept; the others are retried by polls', async (t) => {
  const [a, b, c] = await startCalendars(t, 'a', 'b', 'c');
  b.misbehaves = { status: 503, body: 'try later\nsecond <line>' };
  await c.close();
  const one = await witnessOf(t, [a, b, c]).ask();
  t.match(stored(one).detail, {
    calendars: [
      { url: a.url, status: 'pending' },
      { url: b.url, status: 'failed', reason: 'HTTP 503 (try later)' },
      { url: c.url, status: 'failed', reason: /ECONNREFUSED/ },
    ],
  });
  const two = witnessOf(t, [a, b, c], { min: 2 });
  await t.rejects(two.ask(), {
    message: `only 1 of the 2 calendars needed accepted the request: ${b.url}: HTTP 503 (try later) · ${c.url}: ${new URL(c.url).host} cannot be asked: ECONNREFUSED`,
  });

  b.misbehaves = undefined;
  const polled = await two.poll(stored(one));
  t.match(stored(polled).detail, {
    calendars: [{ url: a.url }, { url: b.url, status: 'pending' }, { status: 'failed' }],
  });
  const { header } = b.mine(5);
  const landed = await two.poll(stored(polled));
  const bitcoin_merkle_root = toDisplayHex(parseBlockHeader(header).merkleRoot);
  t.match(landed, { type: 'landed', detail: { bitcoin_height: 5, bitcoin_merkle_root } });
});

t.test('calendars that hang, lie or send garbage are rejected', async (t) => {
  const [a] = await startCalendars(t, 'a');
  const witness = witnessOf(t, [a], { timeoutMs: 200 });
  const wrong = {
    hang: /no whole answer within 200 ms/,
    'HTTP 404': /: HTTP 404$/,
    'a redirect': /: HTTP 302$/,
    garbage: /: malformed answer: /,
    nothing: /: malformed answer: /,
    'a page': /: malformed answer: /,
    'too much': /the answer has more than 10000 bytes/,
  };
  const answers: Record<keyof typeof wrong, Calendar['misbehaves']> = {
    hang: 'hang',
    'HTTP 404': { status: 404, body: '' },
    'a redirect': { status: 302, body: '' },
    garbage: { status: 200, body: randomBytes(500).fill(0xf4, 0, 1) },
    nothing: { status: 200, body: '' },
    'a page': { status: 200, body: '<html>' },
    'too much': { status: 200, body: Buffer.alloc(10_001) },
  };
  const pending = stored(await witness.ask());
  for (const [what, misbehaves] of Object.entries(answers)) {
    a.misbehaves = misbehaves;
    const message = wrong[what as keyof typeof wrong];
    await t.rejects(witness.ask(), { message }, `${what}, when it is asked`);
    if (what === 'HTTP 404') t.match(await witness.poll(pending), { type: 'pending' });
    else await t.rejects(witness.poll(pending), { message }, `${what}, when it is polled`);
  }
});

t.test('no address is contacted but the configured ones', async (t) => {
  const [a, stranger] = await startCalendars(t, 'a', 'stranger');
  a.uri = stranger.url;
  const witness = witnessOf(t, [a]);
  await t.rejects(witness.ask(), {
    message: `only 0 of the 1 calendars needed accepted the request: ${a.url}: it continues at ${stranger.url}, which is not among the calendars of this witness`,
  });
  const both = await witnessOf(t, [a, stranger], { min: 2 }).ask();
  stranger.requests.length = 0;
  t.strictSame(await witness.poll(stored(both)), {
    type: 'abandoned',
    reason: `the calendars that have this request are not among the calendars of this witness: ${stranger.url}, ${stranger.url}`,
  });
  t.strictSame(stranger.requests, []);
  a.uri = `${a.url}/`;
  t.match(await witness.ask(), { type: 'pending' }, 'a slash at the end makes no difference');
});

t.test('a calendar of a pool continues elsewhere if that is configured too', async (t) => {
  const [pool, home] = await startCalendars(t, 'pool', 'home');
  pool.uri = home.url;
  const witness = witnessOf(t, [pool, home], { min: 2 });
  const polled = await witness.poll(stored(await witness.ask()));
  t.strictSame(
    pool.requests.map((request) => request.slice(0, 12)),
    ['POST /digest'],
    'the pool is not asked again',
  );
  t.equal(home.requests.filter((request) => request.startsWith('GET /timestamp/')).length, 2);
  t.match(stored(polled).detail, { calendars: [{ url: pool.url, status: 'pending' }, { url: home.url }] });
});

t.test(
  'with a block explorer, only blocks with the right Merkle root count, and bundles carry the header',
  async (t) => {
    const [liar, honest] = await startCalendars(t, 'liar', 'honest');
    const explorer = await startExplorer(t);
    const witness = witnessOf(t, [liar, honest], { explorerUrl: explorer.url });
    const pending = stored(await witness.ask());
    const { host } = new URL(explorer.url);
    liar.mine(5);
    await t.rejects(witness.poll(pending), { message: `${host}: HTTP 404 for block-height/5` });
    explorer.add({ height: 5, header: mineHeader(digest, 1_700_000_000) });
    await t.rejects(witness.poll(pending), {
      message: 'a calendar names block 5, which has another Merkle root',
    });
    const block = honest.mine(6);
    explorer.add(block);
    t.match(await witness.poll(pending), {
      type: 'landed',
      detail: { bitcoin_height: 6, bitcoin_header: toHex(block.header) },
    });
    for (const answer of ['', '<html>', '00'.repeat(32), 'ff'.repeat(80), 'a'.repeat(2_000)]) {
      explorer.answer = answer;
      await t.rejects(witness.poll(pending), { name: 'WitnessRequestError' }, answer.slice(0, 10));
    }
  },
);

t.test('an aborted request ends', async (t) => {
  const [a] = await startCalendars(t, 'a');
  const witness = witnessOf(t, [a]);
  const pending = stored(await witness.ask());
  a.misbehaves = 'hang';
  for (const call of [witness.ask, (signal: AbortSignal) => witness.poll(pending, signal)]) {
    const abort = new AbortController();
    const called = call(abort.signal);
    abort.abort();
    await t.rejects(called, { message: /aborted/ });
  }
});

t.test('a request that was sent but not stored is sent again without harm', async (t) => {
  const [a] = await startCalendars(t, 'a');
  const witness = witnessOf(t, [a]);
  await witness.ask();
  const again = await witness.ask();
  a.mine(6);
  t.match(await witness.poll(stored(again)), { type: 'landed', detail: { bitcoin_height: 6 } });
});

t.test('a state of another checkpoint is rejected', async (t) => {
  const [a] = await startCalendars(t, 'a');
  const witness = witnessOf(t, [a]);
  const pending = stored(await witness.ask());
  const other = { ...checkpoint, body: utf8('another') };
  await t.rejects(witness.poll({ ...pending, checkpoint: other }), { message: /another digest/ });
  const otherRoot = { ...checkpoint, rootHash: '00'.repeat(32) };
  await t.rejects(witness.poll({ ...pending, checkpoint: otherRoot }), { message: /another checkpoint/ });
  await t.rejects(witness.poll({ ...pending, state: pending.state.slice(1) }), {
    message: /not an .ots file/,
  });
});
