import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { encodeAddCheckpoint, originHash } from '../../../src/proof/log/add-checkpoint.js';
import { signCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { cosign, verifyCosignature } from '../../../src/proof/log/cosignature.js';
import {
  encodeNote,
  encodeSignatureLine,
  ML_DSA_44_NOTE_KEY,
  noteKey,
  parseNote,
  parseSignatureLines,
} from '../../../src/proof/log/note.js';
import { createLogger } from '../../../src/server/core/logger.js';
import { createCosigner } from '../../../src/server/cosigner/cosigner.js';
import { openHistory } from '../../../src/server/cosigner/history.js';
import { RegisterError } from '../../../src/server/log/register/register.js';
import { FUZZ } from '../../support/fuzz.js';
import { newCosigner } from '../../support/witnesses/c2sp-witness.js';
import { growLog } from '../../support/witnesses/grown-log.js';

const log = growLog('example.com/log42');
const NOW_MS = 1_800_000_000_000;

async function open(
  t: Test,
  algorithms: readonly ('ed25519' | 'ml-dsa-44')[] = ['ed25519'],
  dir = t.testdir(),
) {
  const cosigners = algorithms.map((algorithm) => newCosigner('witness.example/w1', algorithm));
  const history = await openHistory(dir);
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({
    level: 'info',
    destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  const other = growLog('other.example');
  const logs = [
    { origin: log.origin, keys: [log.key] },
    { origin: other.origin, keys: [other.key] },
  ];
  const add = createCosigner({ logs, cosigners, history, nowMs: () => NOW_MS, log: logger });
  return { add, history, cosigners, lines, other, dir, logs };
}

t.test('a log that grows is cosigned, and the note is kept with its signatures', async (t) => {
  const { add, history, cosigners } = await open(t, ['ed25519', 'ml-dsa-44']);
  for (const [from, to] of [
    [0, 0],
    [0, 5],
    [5, 5],
    [5, 256],
    [256, 257],
  ] as const) {
    const answer = await add(log.request(from, to));
    t.match(answer, { status: 200 });
    const cosigned = parseSignatureLines(answer.body);
    t.equal(cosigned.length, 2);
    for (const [i, key] of cosigners.entries()) {
      t.equal(await verifyCosignature(log.body(to), cosigned[i]!, key), NOW_MS / 1000);
    }
    t.equal(await history.findNote(log.origin), log.note(to) + answer.body);
  }
  t.equal((await add(log.request(257, 257))).status, 200, 'the same again');
});

t.test('everything else is rejected with the status of the specification', async (t) => {
  const { add, other } = await open(t);
  const fork = log.fork(3);
  const stranger = growLog(log.origin);
  t.match(await add(log.request(0, 10)), { status: 200 });
  const oversized = encodeAddCheckpoint({ oldSize: 11, proof: [], note: log.note(10) });
  const withProof = (oldSize: number, size: number, proof: Uint8Array[]) =>
    encodeAddCheckpoint({ oldSize, proof, note: log.note(size) });
  const badEmpty = signCheckpoint(
    { origin: other.origin, size: 0, rootHash: sha256().map((b) => b ^ 1) },
    other.signer,
  );
  const note = parseNote(log.note(20));
  const twice = encodeNote({ ...note, signatures: [...note.signatures, ...note.signatures] });
  const [valid] = note.signatures;
  const spoiled = encodeNote({
    ...note,
    signatures: [{ ...valid!, signature: valid!.signature.map((byte) => byte ^ 1) }],
  });
  const cases: [string, string, number, string?][] = [
    ['nothing', '', 400],
    ['no note', 'old 0\n\n', 400],
    ['no size', `\n${log.note(20)}`, 400],
    ['a size with a zero', log.request(10, 20).replace('old 10', 'old 010'), 400],
    ['a negative size', log.request(10, 20).replace('old 10', 'old -10'), 400],
    ['a carriage return', log.request(10, 20).replace('\n', '\r\n'), 400],
    ['a proof that is no base64', `old 10\n!\n\n${log.note(20)}`, 400],
    [
      'a proof of 31 bytes',
      encodeAddCheckpoint({ oldSize: 10, proof: [new Uint8Array(31)], note: log.note(20) }),
      400,
    ],
    [
      '64 lines of proof',
      withProof(
        10,
        20,
        Array.from({ length: 64 }, () => sha256()),
      ),
      400,
    ],
    ['a text that is no checkpoint', `old 10\n\nx\n\n${log.note(20).split('\n\n')[1]}`, 400],
    ['an unknown log', growLog('unknown.example').request(0, 5), 404],
    ['another key', stranger.request(10, 20), 403],
    ['a wrong signature', encodeAddCheckpoint({ oldSize: 10, proof: log.prove(10, 20), note: spoiled }), 403],
    [
      'two signatures by one key',
      encodeAddCheckpoint({ oldSize: 10, proof: log.prove(10, 20), note: twice }),
      403,
    ],
    ['an old size above the size', oversized, 400],
    ['an older size', log.request(0, 20), 409, '10\n'],
    ['a later size', log.request(15, 20), 409, '10\n'],
    ['a smaller checkpoint', log.request(5, 5), 409, '10\n'],
    ['another root of the size', encodeAddCheckpoint({ oldSize: 10, proof: [], note: fork.note(10) }), 409],
    ['the same with a proof', withProof(10, 10, [sha256()]), 422],
    ['a fork', fork.request(10, 20), 422],
    ['a proof too long', withProof(10, 20, [...log.prove(10, 20), sha256()]), 422],
    ['a proof too short', withProof(10, 20, log.prove(10, 20).slice(1)), 422],
    ['no proof', withProof(10, 20, []), 422],
    ['a proof from zero', encodeAddCheckpoint({ oldSize: 0, proof: [sha256()], note: other.note(5) }), 422],
    ['an empty tree with a root', encodeAddCheckpoint({ oldSize: 0, proof: [], note: badEmpty }), 409],
  ];
  for (const [what, request, status, body] of cases) {
    const answer = await add(request);
    t.equal(answer.status, status, `${what}: ${answer.body}`);
    const type = body === undefined ? 'text/plain; charset=utf-8' : 'text/x.tlog.size';
    t.equal(answer.contentType, type, what);
    if (body !== undefined) t.equal(answer.body, body, what);
  }
  t.match(await add(log.request(10, 20)), { status: 200 }, 'none of them changed anything');
  t.match(await add(other.request(0, 0)), { status: 200 });
});

t.test('two histories that a log signed are reported with the note', async (t) => {
  const { add, lines } = await open(t);
  await add(log.request(0, 10));
  const fork = log.fork(3);
  await add(encodeAddCheckpoint({ oldSize: 10, proof: [], note: fork.note(10) }));
  t.match(lines.at(-1), { level: 'fatal', origin: log.origin, size: 10, note: fork.note(10) });
});

t.test('of concurrent requests one is cosigned, over one folder and several processes', async (t) => {
  const dir = t.testdir();
  const [one, two] = [await open(t, ['ed25519'], dir), await open(t, ['ed25519'], dir)];
  const histories = [log, log.fork(0), log.fork(3), log.fork(7)];
  let size = 0;
  let standing = histories[0]!;
  for (const next of [10, 30, 31, 64, 200]) {
    const answers = await Promise.all(
      histories.flatMap((history) =>
        [one, two].map(async ({ add }) => ({ history, ...(await add(history.request(size, next))) })),
      ),
    );
    const cosigned = answers.filter(({ status }) => status === 200);
    t.equal(
      new Set(cosigned.map(({ history }) => Buffer.from(history.root(next)).toString('hex'))).size,
      1,
      `at ${next}`,
    );
    t.strictSame(
      [...new Set(answers.map(({ status }) => status))].filter(
        (status) => ![200, 409, 422, 503].includes(status),
      ),
      [],
    );
    if (size > 0) t.equal(cosigned[0]?.history, standing, 'it stays with the history it began with');
    standing = cosigned[0]!.history;
    size = next;
  }
});

t.test(
  'a log may have several keys, of any type, and a witness without Ed25519 signs no extension lines',
  async (t) => {
    const mlDsa = newCosigner('pq.example', 'ml-dsa-44');
    const second = growLog('pq.example');
    const logs = [
      {
        origin: 'pq.example',
        keys: [second.key, noteKey('pq.example', mlDsa.publicKey, ML_DSA_44_NOTE_KEY)],
      },
    ];
    const opened = await open(t, ['ml-dsa-44']);
    const make = (algorithm: 'ed25519' | 'ml-dsa-44') =>
      createCosigner({
        logs,
        cosigners: [newCosigner('witness.example/w1', algorithm)],
        history: opened.history,
        nowMs: () => NOW_MS,
        log: createLogger({ level: 'silent' }),
      });
    const body = second.body(5);
    // A log's own signature has no time.
    const line = cosign(body, 0, mlDsa);
    const note = encodeNote({ text: body, signatures: [line] });
    t.match(await make('ml-dsa-44')(encodeAddCheckpoint({ oldSize: 0, proof: [], note })), { status: 200 });
    t.equal((await opened.history.findNote('pq.example'))?.startsWith(note), true);
    const wrong = encodeNote({ text: second.body(6), signatures: [line] });
    t.match(
      await make('ml-dsa-44')(encodeAddCheckpoint({ oldSize: 5, proof: second.prove(5, 6), note: wrong })),
      { status: 403 },
    );

    const extended = `${second.body(8)}extension\n`;
    const { name, keyId } = second.key;
    const signed =
      extended +
      '\n' +
      encodeSignatureLine({ name, keyId, signature: second.signer.sign(Buffer.from(extended)) });
    const request = encodeAddCheckpoint({ oldSize: 5, proof: second.prove(5, 8), note: signed });
    t.match(await make('ml-dsa-44')(request), { status: 400, body: /extension/ });
    t.match(await make('ed25519')(request), { status: 200 });
  },
);

t.test('the newest note of several processes is served, in any order of their writes', async (t) => {
  const dir = t.testdir();
  const histories = await Promise.all([openHistory(dir), openHistory(dir), openHistory(dir)]);
  const [slow] = histories;
  await writeFile(join(dir, `${originHash(log.origin)}.note`), log.note(2));
  t.equal(await slow?.findNote(log.origin), log.note(2), 'as an earlier release stored it');
  for (let size = 3; size < 30; size += 3) {
    const sizes = [size + 2, size + 1, size];
    await Promise.all(sizes.map((each, i) => histories[i]?.storeNote(log.origin, log.note(each))));
    for (const history of histories) t.equal(await history.findNote(log.origin), log.note(size + 2));
  }
  await slow?.storeNote(log.origin, log.note(4));
  t.equal(await slow?.findNote(log.origin), log.note(29), 'after it stood still');
});

t.test('state survives restarts, and a corrupt folder is rejected, not treated as empty', async (t) => {
  const first = await open(t);
  await first.add(log.request(0, 10));
  const again = await open(t, ['ed25519'], first.dir);
  t.match(await again.add(log.request(0, 20)), { status: 409, body: '10\n' });
  await writeFile(join(first.dir, `${originHash(log.origin)}.checkpoint`, 'garbage'), '');
  await t.rejects(again.add(log.request(10, 20)), RegisterError);
});

t.test('a request with a changed byte never yields a cosignature of an unsigned checkpoint', async (t) => {
  const { add } = await open(t);
  await add(log.request(0, 10));
  const request = log.request(10, 20);
  let seed = FUZZ.seed;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let i = 0; i < FUZZ.cases * 10; i++) {
    const at = random(request.length);
    const changed =
      request.slice(0, at) + String.fromCharCode(random(256)) + request.slice(at + 1 - random(2));
    if (changed === request) continue;
    t.not((await add(changed)).status, 200, JSON.stringify(changed.slice(Math.max(0, at - 10), at + 10)));
  }
});
