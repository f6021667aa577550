/** A witness as the register: only what it has cosigned counts, and every other answer is an error that names it. */
import t, { type Test } from 'tap';
import { utf8 } from '../../../../src/proof/bytes/encoding.js';
import { cosign } from '../../../../src/proof/log/cosignature.js';
import { encodeNote, encodeSignatureLine, parseNote } from '../../../../src/proof/log/note.js';
import type { Answer } from '../../../../src/server/cosigner/cosigner.js';
import type { NewRegisterEntry } from '../../../../src/server/log/register/register.js';
import { openRegister } from '../../../../src/server/witnessing/register/open-register.js';
import { newCosigner, startC2spWitness } from '../../../support/witnesses/c2sp-witness.js';
import { growLog, type History } from '../../../support/witnesses/grown-log.js';

const log = growLog('live.log.example.com', 40);
const { origin } = log;
const entry = (size: number, history: History = log): NewRegisterEntry => ({
  origin,
  size,
  rootHash: history.root(size),
  keyHash: undefined,
  note: history.note(size),
  proveConsistency: async (fromSize) => history.prove(fromSize, size),
});
const text = (status: number, body: string): Answer => ({ status, contentType: 'text/plain', body });
const size = (body: string): Answer => ({ status: 409, contentType: 'text/x.tlog.size', body });

async function open(t: Test) {
  const witness = await startC2spWitness(t, [{ origin, keys: [log.key] }]);
  const url = `${witness.url}/?token=secret`;
  return { witness, register: await openRegister({ url, keys: witness.keys.slice(0, 1) }) };
}

/** The note with one bit of its last signature or of its text changed. */
function flip(note: string, isText: boolean): string {
  const { text, signatures } = parseNote(note);
  if (isText) return encodeNote({ text: text.replace(/\n\d/, '\n9'), signatures });
  const flipped = signatures.map((line) => ({ ...line, signature: line.signature.map((byte) => byte ^ 1) }));
  return encodeNote({ text, signatures: flipped });
}

t.test('a checkpoint without a valid cosignature is an error, not an absence', async (t) => {
  const { witness, register } = await open(t);
  await register.replace(undefined, entry(7));
  const stranger = newCosigner('witness.example/w2', 'ed25519');
  const now = Math.floor(Date.now() / 1000);
  const byStranger = log.note(9) + encodeSignatureLine(cosign(log.body(9), now, stranger));
  const other = growLog('test.log.example.com', 9);
  const answers: [string, (note: string) => Answer | 'hang', RegExp][] = [
    ['only the log signed', () => text(200, log.note(9)), /it signed as live\.log\.example\.com\+/],
    ['another key', () => text(200, byStranger), /not as witness\.example\/w1\+/],
    ['its signature, changed', (note) => text(200, flip(note, false)), /is not valid over the checkpoint/],
    ['another text', (note) => text(200, flip(note, true)), /is not valid over the checkpoint/],
    ['another log', () => text(200, other.note(9) + witness.sign(other.body(9))), /is of another log/],
    ['a page', () => text(200, '<html></html>\n'), /a note has no empty line/],
    ['nothing', () => text(200, ''), /a note has no empty line/],
    ['too much', () => text(200, 'x'.repeat(80_000)), /more than \d+ bytes/],
    ['a fault', () => text(500, 'x'), /answered with status 500/],
    ['no content', () => text(204, ''), /answered with status 204/],
    ['a redirection', () => text(302, ''), /answered with status 302/],
    ['a limit', () => text(429, ''), /answered with status 429/],
    ['silence', () => 'hang', /no whole answer within 2000 ms/],
  ];
  for (const [what, answer, expected] of answers) {
    witness.monitored = (note) => answer(note ?? '');
    const error = await register.read(origin).then(String, (error: Error) => error);
    t.match(error, { name: 'RegisterError', message: expected }, what);
    t.match(String(error), /the checkpoint register http:\/\/127.*\/[0-9a-f]{64}\/checkpoint cannot be read/);
    t.notMatch(String(error), /secret/);
  }
  witness.monitored = () => undefined;
  t.match(await register.read(origin), { size: 7 });
});

t.test('an answer to add-checkpoint counts with a cosignature by the configured key only', async (t) => {
  const { witness, register } = await open(t);
  await register.replace(undefined, entry(7));
  const refused = async (what: string, answer: Answer | 'hang', expected: RegExp) => {
    witness.behaviour = () => answer;
    const error = await register.replace(entry(7), entry(20)).then(String, (error: Error) => error);
    t.match(error, { name: 'RegisterError', message: expected }, what);
    t.match(String(error), /cannot be written/);
  };
  const sign = (of: number, history: History = log) => text(200, witness.sign(history.body(of)));
  await refused('empty', text(200, ''), /not signature lines/);
  await refused('another checkpoint', sign(19), /is not valid over the checkpoint/);
  await refused('another history', sign(20, log.fork(7)), /is not valid over the checkpoint/);
  await refused('a fault', text(503, ''), /503: it has a fault/);
  await refused('unknown', text(404, ''), /404: it does not know live\.log\.example\.com/);
  await refused('another key', text(403, ''), /403: it has another key/);
  await refused('a limit', text(429, ''), /429: it limits the rate/);
  await refused('an unproven 422', text(422, ''), /ALARM: what it has cosigned of .* at size 7/);
  await refused('a 409 without reason', size('7\n'), /409/);
  await refused(
    'a 409 without size',
    text(409, ''),
    /ALARM: the witness serves .* size 7, and says .* size 0/,
  );
  await refused('a smaller size', size('3\n'), /ALARM: the witness serves .* size 7, and says .* size 3/);
  await refused('a larger size', size('21\n'), /ALARM: the witness serves .* size 7, and says .* size 21/);
  witness.behaviour = () => undefined;
  t.equal(await register.replace(entry(7), entry(20)), true);
});

t.test('a witness that was killed before it stored the note is requested once more', async (t) => {
  const { witness, register } = await open(t);
  await register.replace(undefined, entry(7));
  const lagging = (await register.read(origin))?.note ?? '';
  t.equal(await register.replace(entry(7), entry(12)), true);
  witness.monitored = () => text(200, lagging);
  t.equal(await register.replace(entry(7), entry(12)), true, 'the same checkpoint');
  t.equal(await register.replace(entry(7), entry(20)), true, 'a larger one');
  const fork = log.fork(9);
  await t.rejects(register.replace(entry(7), entry(25, fork)), /ALARM: what it has cosigned .* at size 20/);
  witness.monitored = () => undefined;
  t.match(await register.read(origin), { size: 20 });
  t.equal(await register.replace(entry(7), entry(25, fork)), false, 'once it serves what it has cosigned');
});

t.test('a first checkpoint that it does not serve yet is requested once more', async (t) => {
  const { witness, register } = await open(t);
  t.equal(await register.replace(undefined, entry(7)), true);
  witness.monitored = () => text(404, '');
  t.equal(await register.replace(undefined, entry(7)), true);
  t.equal(
    utf8(witness.requests.at(-1) ?? '')
      .slice(0, 5)
      .toString(),
    utf8('old 7').toString(),
  );
});

t.test('a witness that is unavailable is an error', async (t) => {
  const { witness } = await open(t);
  const register = await openRegister({ url: 'http://127.0.0.1:1/?token=secret', keys: witness.keys });
  for (const run of [() => register.read(origin), () => register.replace(undefined, entry(1))]) {
    const error = await run().then(String, (error: Error) => error);
    t.match(error, { name: 'RegisterError', message: /127\.0\.0\.1:1 cannot be asked: ECONNREFUSED/ });
    t.notMatch(String(error), /secret/);
  }
});
