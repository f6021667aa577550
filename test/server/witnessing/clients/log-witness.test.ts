import t, { type Test } from 'tap';
import { Agent } from 'undici';
import { fromUtf8, utf8 } from '../../../../src/proof/bytes/encoding.js';
import { cosign, verifyCosignature } from '../../../../src/proof/log/cosignature.js';
import { encodeSignatureLine, type NoteKey, parseSignatureLines } from '../../../../src/proof/log/note.js';
import type { Answer } from '../../../../src/server/cosigner/cosigner.js';
import { logWitness } from '../../../../src/server/witnessing/clients/log-witness.js';
import type { WitnessedCheckpoint } from '../../../../src/server/witnessing/clients/witness.js';
import {
  type Behaviour,
  type C2spWitness,
  newCosigner,
  startC2spWitness,
} from '../../../support/witnesses/c2sp-witness.js';
import { growLog, type History } from '../../../support/witnesses/grown-log.js';

const log = growLog('live.log.example');
const never = new AbortController().signal;

function checkpoint(size: number, coveredSize: number, history: History = log): WitnessedCheckpoint {
  return {
    origin: log.origin,
    treeSize: size,
    rootHash: Buffer.from(history.root(size)).toString('hex'),
    body: utf8(history.body(size)),
    note: history.note(size),
    coveredSize,
    proveConsistency: async (fromSize) => history.prove(fromSize, size),
  };
}

function open(
  t: Test,
  { url }: C2spWitness,
  keys: readonly NoteKey[],
  limits: { timeoutMs?: number; maxBytes?: number } = {},
) {
  const dispatcher = new Agent();
  t.teardown(() => dispatcher.destroy());
  return logWitness(
    { dispatcher },
    { name: 'w1', url, keys, timeoutMs: 60_000, maxBytes: 65_536, ...limits },
  );
}

const text = (status: number, body: string): Answer => ({ status, contentType: 'text/plain', body });
const size = (body: string): Answer => ({ status: 409, contentType: 'text/x.tlog.size', body });

t.test('a log that grows is cosigned with every key that is configured', async (t) => {
  const witness = await startC2spWitness(t, [{ origin: log.origin, keys: [log.key] }]);
  const both = open(t, witness, witness.keys);
  t.match(both, { name: 'w1', kind: 'log_witness' });
  for (const [from, to] of [
    [0, 1],
    [1, 7],
    [7, 7],
    [7, 256],
    [256, 300],
  ] as const) {
    const answer = await both.ask(checkpoint(to, from), never);
    if (answer.type !== 'landed') throw new Error('a C2SP witness answers at once');
    const lines = parseSignatureLines(fromUtf8(answer.evidence));
    t.equal(lines.length, 2);
    for (const [i, key] of witness.keys.entries()) {
      const time = await verifyCosignature(log.body(to), lines[i]!, key);
      t.equal(new Date(Number(time) * 1000).toISOString(), answer.detail.cosigned_at);
    }
  }
  t.equal(witness.requests.length, 5, 'one request each');
  const one = open(t, witness, witness.keys.slice(1));
  const answer = await one.ask(checkpoint(300, 300), never);
  if (answer.type !== 'landed') throw new Error('a C2SP witness answers at once');
  t.match(parseSignatureLines(fromUtf8(answer.evidence)), [{ keyId: witness.keys[1]!.keyId }]);
});

t.test('a witness at another size returns it, and gets one more request from there', async (t) => {
  const witness = await startC2spWitness(t, [{ origin: log.origin, keys: [log.key] }]);
  const asked = open(t, witness, witness.keys);
  await asked.ask(checkpoint(9, 0), never);
  witness.requests.length = 0;
  t.equal((await asked.ask(checkpoint(20, 0), never)).type, 'landed', 'it knows more than we remember');
  t.equal((await asked.ask(checkpoint(30, 25), never)).type, 'landed', 'it knows less');
  t.strictSame(
    witness.requests.map((request) => request.slice(0, request.indexOf('\n'))),
    ['old 0', 'old 9', 'old 25', 'old 20'],
  );
  t.equal(
    (await asked.ask(checkpoint(25, 300), never).catch(String)).toString(),
    'WitnessRequestError: the witness has cosigned live.log.example at size 30, beyond this checkpoint of size 25',
  );
});

t.test('a witness that has another root of the same size is an alarm', async (t) => {
  const witness = await startC2spWitness(t, [{ origin: log.origin, keys: [log.key] }]);
  const asked = open(t, witness, witness.keys);
  await asked.ask(checkpoint(20, 0), never);
  for (const answer of [text(409, 'another root'), size('20\n')]) {
    witness.behaviour = () => answer;
    const error = await asked.ask(checkpoint(20, 20), never).catch((error: unknown) => error);
    t.match(error, { code: 'inconsistent', message: /ALARM: it has cosigned another root of live\.log/ });
  }
});

t.test('every other answer is rejected with a line that an operator can act on', async (t) => {
  const witness = await startC2spWitness(t, [{ origin: log.origin, keys: [log.key] }]);
  const stranger = newCosigner('witness.example/w2', 'ed25519');
  const sameName = newCosigner(witness.keys[0]!.name, 'ed25519');
  const now = Math.floor(Date.now() / 1000);
  const lineBy = (cosigner: typeof stranger, time = now, body = log.body(20)) =>
    encodeSignatureLine(cosign(body, time, cosigner));
  const underItsKeyId = {
    ...cosign(log.body(20), now, stranger),
    name: witness.keys[0]!.name,
    keyId: witness.keys[0]!.keyId,
  };
  let conflicts = 0;
  const answers: [string, Behaviour, RegExp][] = [
    ['400', () => text(400, 'bad\nsecond line'), /status 400 \("bad"\): it cannot read the request/],
    ['403', () => text(403, ''), /status 403: it has another key for live\.log\.example/],
    ['404', () => text(404, 'x'), /status 404 \("x"\): it does not know live\.log\.example/],
    [
      '422',
      () => text(422, 'x'),
      /422 \("x"\): ALARM: .* at size 7 is inconsistent with the checkpoint of size 20/,
    ],
    ['429', () => text(429, ''), /429: it limits the rate/],
    ['500', () => text(500, ''), /500: it has a fault/],
    ['302', () => text(302, ''), /302: this is no answer of a C2SP witness/],
    ['control characters', () => text(500, '\u001b[31m\u0000red'), /500 \("\?\[31m\?red"\)/],
    ['a long text', () => text(500, 'x'.repeat(1_000)), /^.{0,300}$/],
    ['409 without a size', () => text(409, '3\n'), /409, but not with the size/],
    ['409 with garbage', () => size('three\n'), /409, but not with the size/],
    ['409 without newline', () => size('3'), /409, but not with the size/],
    ['409 with the size sent', () => size('7\n'), /409, but not with the size/],
    ['409 beyond 2^53', () => size('9007199254740993\n'), /409, but not with the size/],
    ['409 twice', () => size(`${++conflicts}\n`), /409 \("2"\): its size changed between two requests/],
    ['nothing', () => text(200, ''), /answer is not signature lines/],
    ['a page', () => text(200, '<html>\n'), /answer is not signature lines/],
    [
      'no UTF-8',
      () => text(200, Buffer.from([0xff, 0x0a]).toString('latin1')),
      /answer is not signature lines/,
    ],
    ['too many lines', () => text(200, lineBy(stranger).repeat(65)), /answer is not signature lines/],
    ['too much', () => text(200, 'x'.repeat(70_000)), /more than 65536 bytes/],
    [
      'only by another',
      () => text(200, lineBy(stranger)),
      /it signed as witness\.example\/w2\+[0-9a-f]{8}, not as witness\.example\/w1\+/,
    ],
    [
      'another key of its name',
      () => text(200, lineBy(sameName)),
      /it signed as .* not as .*, its verifier_key/,
    ],
    [
      'its key id, another signature',
      () => text(200, encodeSignatureLine(underItsKeyId)),
      /is not valid over the checkpoint/,
    ],
  ];
  const asked = open(t, witness, witness.keys.slice(0, 1));
  await asked.ask(checkpoint(7, 0), never);
  for (const [what, behaviour, expected] of answers) {
    witness.behaviour = behaviour;
    const error = await asked.ask(checkpoint(20, 7), never).then(
      () => undefined,
      (error: Error) => error,
    );
    t.match(error?.message, expected, what);
    t.notMatch(error?.message, /\n/, what);
  }
  witness.behaviour = () => undefined;
  t.equal((await asked.ask(checkpoint(20, 7), never)).type, 'landed', 'it recovers');
});

t.test('a cosignature of another checkpoint than the one sent is rejected', async (t) => {
  const witness = await startC2spWitness(t, [{ origin: log.origin, keys: [log.key] }]);
  const asked = open(t, witness, witness.keys.slice(0, 1));
  await asked.ask(checkpoint(7, 0), never);
  const fork = log.fork(3);
  await t.rejects(asked.ask(checkpoint(20, 7, fork), never), /ALARM: .* inconsistent/);
  // An equivocating one signs the other history with its own key.
  witness.behaviour = () => text(200, witness.sign(fork.body(20)));
  await t.rejects(asked.ask(checkpoint(20, 7), never), /is not valid over the checkpoint/);
  witness.behaviour = () => text(200, witness.sign(log.body(19)));
  await t.rejects(asked.ask(checkpoint(20, 7), never), /is not valid over the checkpoint/);
});

t.test('a witness that hangs or is unavailable times out', async (t) => {
  const witness = await startC2spWitness(t, [{ origin: log.origin, keys: [log.key] }]);
  witness.behaviour = () => 'hang';
  await t.rejects(
    open(t, witness, witness.keys, { timeoutMs: 50 }).ask(checkpoint(7, 0), never),
    /within 50 ms/,
  );
  const aborting = new AbortController();
  const asked = open(t, witness, witness.keys).ask(checkpoint(7, 0), aborting.signal);
  aborting.abort();
  await t.rejects(asked, { code: 'aborted' });
  const away = { ...witness, url: 'http://127.0.0.1:1/prefix/?token=secret' };
  const error = await open(t, away, witness.keys)
    .ask(checkpoint(7, 0), never)
    .then(() => '', String);
  t.match(error, /127\.0\.0\.1:1 cannot be asked: ECONNREFUSED/);
  t.notMatch(error, /secret/);
});
