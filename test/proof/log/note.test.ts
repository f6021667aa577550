import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import t from 'tap';
import { concatBytes, fromBase64, toBase64, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import {
  type Checkpoint,
  checkpointBody,
  checkpointDigest,
  openCheckpoint,
  parseCheckpoint,
  parseCheckpointBody,
  signCheckpoint,
  verifyNoteSignature,
} from '../../../src/proof/log/checkpoint.js';
import { cosign, verifyCosignature } from '../../../src/proof/log/cosignature.js';
import {
  appendSignatures,
  COSIGNATURE_V1_KEY,
  encodeNote,
  encodeSignatureLine,
  encodeVerifierKey,
  noteKey,
  noteKeyHash,
  parseNote,
  parseSignatureLines,
  parseVerifierKey,
} from '../../../src/proof/log/note.js';

function ed25519(privateKey: KeyObject = generateKeyPairSync('ed25519').privateKey) {
  const jwk = privateKey.export({ format: 'jwk' });
  return {
    publicKey: new Uint8Array(Buffer.from(jwk.x!, 'base64url')),
    sign: (data: Uint8Array) => new Uint8Array(sign(null, data, privateKey)),
  };
}

const log = ed25519();
const witness = { name: 'witness.example/w1', ...ed25519() };
const checkpoint: Checkpoint = { origin: 'live.log.example', size: 1234, rootHash: sha256(utf8('root')) };
const envelope = signCheckpoint(checkpoint, log);
const logKey = noteKey(checkpoint.origin, log.publicKey);

// The example of Go's sumdb/note package.
const NEUMANN_KEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const NEUMANN_NOTE =
  'If you think cryptography is the answer to your problem,\n' +
  "then you don't know what your problem is.\n" +
  '\n' +
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';

t.test("a note and key made by Go's implementation verify", async (t) => {
  const key = parseVerifierKey(NEUMANN_KEY);
  const note = parseNote(NEUMANN_NOTE);
  t.equal(encodeVerifierKey(key), NEUMANN_KEY);
  t.equal(encodeNote(note), NEUMANN_NOTE);
  t.ok(await verifyNoteSignature(note, key));
  t.notOk(await verifyNoteSignature({ ...note, text: `${note.text}x\n` }, key));
  t.equal(
    parseVerifierKey('sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8').keyId,
    '033de0ae',
  );
});

t.test("our note is the one Go's implementation makes of the same key and text", async (t) => {
  const seed = fromBase64('AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz').slice(1);
  const pkcs8 = concatBytes(new Uint8Array(Buffer.from('302e020100300506032b657004220420', 'hex')), seed);
  const signer = ed25519(createPrivateKey({ key: Buffer.from(pkcs8), format: 'der', type: 'pkcs8' }));
  const { text } = parseNote(NEUMANN_NOTE);
  const { name, keyId } = noteKey('PeterNeumann', signer.publicKey);
  t.equal(
    encodeNote({ text, signatures: [{ name, keyId, signature: signer.sign(utf8(text)) }] }),
    NEUMANN_NOTE,
  );
});

t.test('a signed checkpoint opens with its log key and with no other', async (t) => {
  const opened = await openCheckpoint(envelope, logKey);
  t.strictSame(parseCheckpointBody(opened.note.text), checkpoint);
  t.equal(opened.note.text, `live.log.example\n1234\n${toBase64(checkpoint.rootHash)}\n`);
  t.equal(opened.note.text, checkpointBody(checkpoint));
  t.strictSame(checkpointDigest(opened.note.text), sha256(utf8(opened.note.text)));
  t.strictSame(
    toHex(noteKeyHash(logKey.name, logKey.publicKey)).slice(0, 8),
    opened.note.signatures[0]!.keyId,
  );
  const others = [
    noteKey(checkpoint.origin, witness.publicKey),
    noteKey('test.log.example', log.publicKey),
    { ...logKey, publicKey: witness.publicKey },
    { ...logKey, type: COSIGNATURE_V1_KEY },
  ];
  for (const key of others) await t.rejects(openCheckpoint(envelope, key), FormatError);
});

t.test('a checkpoint with any character changed does not open', async (t) => {
  const opened: number[] = [];
  for (let at = 0; at < envelope.length; at++) {
    for (const to of ['A', '0', '+', '=', '\n', ' ', 'é']) {
      if (envelope[at] === to) continue;
      const changed = envelope.slice(0, at) + to + envelope.slice(at + 1);
      await openCheckpoint(changed, logKey).then(
        () => opened.push(at),
        () => undefined,
      );
    }
    await openCheckpoint(envelope.slice(0, at), logKey).then(
      () => opened.push(at),
      () => undefined,
    );
  }
  t.strictSame(opened, []);
});

t.test('a second, false line by the same key spoils a note', async (t) => {
  const { name, keyId } = logKey;
  const signature = witness.sign(utf8(checkpointBody(checkpoint)));
  t.notOk(
    await verifyNoteSignature(parseNote(envelope + encodeSignatureLine({ name, keyId, signature })), logKey),
  );
});

t.test('only the canonical form of a checkpoint body is accepted', async (t) => {
  const root = toBase64(checkpoint.rootHash);
  t.equal(parseCheckpointBody(`o\n0\n${root}\n`).size, 0);
  t.equal(parseCheckpointBody(`o\n9007199254740991\n${root}\n`).size, Number.MAX_SAFE_INTEGER);
  const bad = [
    '',
    '\n\n\n',
    `o\n1\n${root}`,
    `\n1\n${root}\n`,
    `o\n01\n${root}\n`,
    `o\n-1\n${root}\n`,
    `o\n1e3\n${root}\n`,
    `o\n 1\n${root}\n`,
    `o\n١\n${root}\n`,
    `o\n9007199254740992\n${root}\n`,
    `o\n${'9'.repeat(400)}\n${root}\n`,
    `o\n1\n${root.slice(0, -4)}\n`,
    `o\n1\n${root.slice(0, -1)}\n`,
    `o\n1\n${toBase64(new Uint8Array(33))}\n`,
    `o\n1\n${root}\nextension\n`,
    `o\n1\n${root}\n\n`,
  ];
  for (const body of bad)
    t.throws(() => parseCheckpointBody(body), FormatError, JSON.stringify(body.slice(0, 60)));
});

t.test('notes are bounded, and only their canonical form is accepted', async (t) => {
  const line = encodeSignatureLine({ name: 'n', keyId: '01020304', signature: new Uint8Array(64) });
  t.equal(parseNote(`a\n\nb\n\n${line}`).text, 'a\n\nb\n', 'the last empty line divides');
  t.equal(parseNote(`a\n\n${line.repeat(64)}`).signatures.length, 64);
  const bad: [string, string][] = [
    ['nothing', ''],
    ['no signature lines', 'a\n\n'],
    ['no empty line', `a\n${line}`],
    ['no newline at the end', `a\n\n${line.slice(0, -1)}`],
    ['an empty line at the end', `a\n\n${line}\n`],
    ['two newlines at the end', `a\n\n${line}\n\n`],
    ['65 signatures', `a\n\n${line.repeat(65)}`],
    ['too long', `${'a'.repeat(70_000)}\n\n${line}`],
    ['a hyphen for the dash', `a\n\n${line.replace('—', '-')}`],
    ['a name with a plus', `a\n\n${line.replace(' n ', ' n+m ')}`],
    ['a name with a no-break space', `a\n\n${line.replace(' n ', ' n\u00a0m ')}`],
    ['no name', `a\n\n${line.replace(' n ', '  ')}`],
    ['a fourth word', `a\n\n${line.replace('\n', ' x\n')}`],
    ['two spaces', `a\n\n${line.replace(' n ', ' n  ')}`],
    ['base64 without padding', `a\n\n${line.replace('=', '')}`],
    ['base64 with stray bits', `a\n\n— n AQIDBB==\n`],
    ['base64url', `a\n\n— n AQIDB_8-\n`],
    ['no signature behind the key id', 'a\n\n— n AQIDBA==\n'],
    ['a carriage return', `a\r\n\n${line}`],
    ['a NUL', `a\u0000\n\n${line}`],
    ['a lone surrogate', `a\ud800\n\n${line}`],
  ];
  for (const [what, note] of bad) t.throws(() => parseNote(note), FormatError, what);
});

t.test('only the canonical form of a verifier key is accepted', async (t) => {
  const vkey = encodeVerifierKey(logKey);
  t.strictSame(parseVerifierKey(vkey), logKey);
  const typed = (type: number) => toBase64(concatBytes(Uint8Array.of(type), log.publicKey));
  const bad = [
    '',
    '++',
    vkey.slice(1),
    vkey.slice(0, -1),
    `${vkey}A`,
    vkey.replace('+', ' '),
    vkey.toUpperCase(),
    vkey.replace(logKey.keyId, '00000000'),
    `${logKey.name}+${logKey.keyId}+${typed(2)}`,
    `${logKey.name}+${logKey.keyId}+${typed(4)}`,
    `${logKey.name}+${logKey.keyId}+${'A'.repeat(100_000)}`,
    `x+${logKey.keyId}+${typed(1)}`,
  ];
  for (const text of bad) t.throws(() => parseVerifierKey(text), FormatError, text.slice(0, 60));
  t.throws(() => noteKey('a b', log.publicKey), FormatError);
  t.throws(() => noteKey('', log.publicKey), FormatError);
});

t.test("a witness's cosignature has its time, and verifies only over the body it signed", async (t) => {
  const body = checkpointBody(checkpoint);
  const key = noteKey(witness.name, witness.publicKey, COSIGNATURE_V1_KEY);
  const line = cosign(body, 1_700_000_000, witness);
  // The line as the format describes it, put together by hand.
  const time = new Uint8Array(8);
  new DataView(time.buffer).setBigUint64(0, 1_700_000_000n);
  const signed = witness.sign(utf8(`cosignature/v1\ntime 1700000000\n${body}`));
  const id = sha256(concatBytes(utf8(witness.name), Uint8Array.of(0x0a, 0x04), witness.publicKey)).slice(
    0,
    4,
  );
  t.equal(encodeSignatureLine(line), `— ${witness.name} ${toBase64(concatBytes(id, time, signed))}\n`);

  t.equal(await verifyCosignature(body, line, key), 1_700_000_000);
  t.equal(await verifyCosignature(checkpointBody({ ...checkpoint, size: 1235 }), line, key), undefined);
  t.equal(await verifyCosignature(body, line, noteKey(witness.name, witness.publicKey)), undefined);
  t.equal(await verifyCosignature(body, line, { ...key, publicKey: log.publicKey }), undefined);
  const accepted: number[] = [];
  for (let at = 0; at < line.signature.length; at++) {
    const signature = line.signature.map((byte, i) => (i === at ? byte ^ 1 : byte));
    if ((await verifyCosignature(body, { ...line, signature }, key)) !== undefined) accepted.push(at);
    const cut = { ...line, signature: line.signature.slice(0, at) };
    if ((await verifyCosignature(body, cut, key)) !== undefined) accepted.push(at);
  }
  t.strictSame(accepted, []);
});

t.test("cosignatures are added to a note once, and the log's signature still verifies", async (t) => {
  const line = cosign(checkpointBody(checkpoint), 1_700_000_000, witness);
  const later = cosign(checkpointBody(checkpoint), 1_700_000_999, witness);
  const answered = parseSignatureLines(encodeSignatureLine(line));
  const joined = appendSignatures(envelope, answered);
  t.equal(joined, envelope + encodeSignatureLine(line));
  t.equal(appendSignatures(joined, [later]), joined, 'the earliest one stays');
  t.equal(appendSignatures(joined, []), joined);
  t.ok(await openCheckpoint(joined, logKey));
  t.equal(parseCheckpoint(joined).note.signatures.length, 2);
  for (const bad of ['', '\n', 'error\n', encodeSignatureLine(line).trim()]) {
    t.throws(() => parseSignatureLines(bad), FormatError);
  }
});
