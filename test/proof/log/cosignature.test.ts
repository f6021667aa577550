import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js';
import t from 'tap';
import { concatBytes, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { checkpointBody, signCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { cosign, verifyCosignature, verifyTimedSignature } from '../../../src/proof/log/cosignature.js';
import {
  appendSignatures,
  COSIGNATURE_V1_KEY,
  encodeSignatureLine,
  encodeVerifierKey,
  ML_DSA_44_NOTE_KEY,
  type NoteSignature,
  noteKey,
  parseNote,
  parseVerifierKey,
} from '../../../src/proof/log/note.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { mlDsaKeyPem, parseMlDsaKey } from '../../../src/server/keys/ml-dsa-key.js';
import { ARTIFACT, ed25519, makeService, NOW } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { makeTrustRoots } from '../sample-trust-roots.js';

const SEED = Uint8Array.from({ length: 32 }, (_, i) => i);
const TIME = 1_700_000_000;
const CHECKPOINT = { origin: 'live.log.example', size: 1234, rootHash: sha256(utf8('root')) };
const BODY = checkpointBody(CHECKPOINT);
const NAME = 'witness.example/w2';

const mlDsa = { name: NAME, type: ML_DSA_44_NOTE_KEY, ...parseMlDsaKey(mlDsaKeyPem(SEED)) };
const key = noteKey(NAME, mlDsa.publicKey, ML_DSA_44_NOTE_KEY);

t.test('key and signature are those of another implementation, byte for byte', async (t) => {
  // Computed with filippo.io/mldsa and filippo.io/torchwood from this seed, without randomness.
  t.equal(key.keyId, 'e16eb88e');
  t.equal(
    toHex(sha256(utf8(encodeVerifierKey(key)))),
    '08920f99abc742e2c1d387e1caacf05fe88b3da8b132acf5a80a70f058d25784',
  );
  const { secretKey } = ml_dsa44.keygen(SEED);
  const sign = (data: Uint8Array) => ml_dsa44.sign(data, secretKey, { extraEntropy: false });
  const line = cosign(BODY, TIME, { ...mlDsa, sign });
  t.equal(
    toHex(sha256(line.signature.slice(8))),
    '0d31b1c334d948f84824d057bc0dfb91a9b3a8e3e3034a3449eb8c4b10487ef9',
  );
  t.equal(await verifyCosignature(BODY, line, key), TIME);
});

t.test('it is of the time, body and name that were signed, and of its type', async (t) => {
  const line = cosign(BODY, TIME, mlDsa);
  t.equal(await verifyCosignature(BODY, line, key), TIME);
  const others: [string, string, NoteSignature, typeof key][] = [
    ['another size', checkpointBody({ ...CHECKPOINT, size: 1235 }), line, key],
    ['another origin', checkpointBody({ ...CHECKPOINT, origin: 'x' }), line, key],
    ['another root', checkpointBody({ ...CHECKPOINT, rootHash: sha256() }), line, key],
    ['an extension line', `${BODY}extension\n`, line, key],
    ['no checkpoint', 'text\n', line, key],
    ['another name', BODY, { ...line, name: 'w3' }, { ...key, name: 'w3' }],
    ['another key', BODY, line, { ...key, publicKey: key.publicKey.map((byte) => byte ^ 1) }],
    ['a short key', BODY, line, { ...key, publicKey: key.publicKey.slice(1) }],
    ['another type', BODY, line, { ...key, type: COSIGNATURE_V1_KEY }],
  ];
  for (const [what, body, signed, by] of others) {
    t.equal(await verifyCosignature(body, signed, by), undefined, what);
  }
  t.throws(() => cosign(`${BODY}extension\n`, TIME, mlDsa), FormatError);
  t.throws(
    () => cosign(checkpointBody({ ...CHECKPOINT, origin: 'x'.repeat(256) }), TIME, mlDsa),
    FormatError,
  );
  t.throws(() => cosign(BODY, TIME, { ...mlDsa, type: 1 }), FormatError);
});

t.test('no signature with a changed byte is accepted, nor a shorter or longer one', async (t) => {
  const line = cosign(BODY, TIME, mlDsa);
  const accepted: number[] = [];
  // Each byte of the time, and of the signature every 31st: beginning, vectors and hint.
  for (let at = 0; at < line.signature.length; at += at < 8 ? 1 : 31) {
    const signature = line.signature.map((byte, i) => (i === at ? byte ^ (1 << (at % 8)) : byte));
    if ((await verifyCosignature(BODY, { ...line, signature }, key)) !== undefined) accepted.push(at);
  }
  for (const signature of [line.signature.slice(0, -1), concatBytes(line.signature, new Uint8Array(1))]) {
    if ((await verifyCosignature(BODY, { ...line, signature }, key)) !== undefined) accepted.push(-1);
  }
  t.strictSame(accepted, []);
});

t.test('without a time it is a signature, but no statement of a witness', async (t) => {
  for (const cosigner of [mlDsa, { name: NAME, ...ed25519() }]) {
    const line = cosign(BODY, 0, cosigner);
    const by = noteKey(NAME, cosigner.publicKey, 'type' in cosigner ? cosigner.type : COSIGNATURE_V1_KEY);
    t.equal(await verifyCosignature(BODY, line, by), undefined);
    t.equal(await verifyTimedSignature(BODY, line, by), 0);
  }
});

t.test('only canonical verifier keys with the length of their type are accepted', async (t) => {
  const vkey = encodeVerifierKey(key);
  t.strictSame(parseVerifierKey(vkey), key);
  const bad = [
    vkey.slice(0, -4),
    `${vkey}AAAA`,
    vkey.replace(key.keyId, '00000000'),
    encodeVerifierKey(noteKey(NAME, mlDsa.publicKey.slice(0, 32), ML_DSA_44_NOTE_KEY)),
    encodeVerifierKey(noteKey(NAME, mlDsa.publicKey, COSIGNATURE_V1_KEY)),
    encodeVerifierKey(noteKey(NAME, new Uint8Array(32), 0x07)),
  ];
  for (const text of bad) t.throws(() => parseVerifierKey(text), FormatError, text.slice(0, 60));
});

t.test('a note has room for sixteen of them', async (t) => {
  const lines = Array.from({ length: 16 }, (_, i) => cosign(BODY, TIME, { ...mlDsa, name: `${NAME}/${i}` }));
  const note = appendSignatures(signCheckpoint(CHECKPOINT, ed25519()), lines);
  t.equal(parseNote(note).signatures.length, 17);
});

t.test('a witness with two keys: both signatures are checked, and one suffices', async (t) => {
  const service = await makeService(t.testdir());
  service.cosigner.mlDsa = parseMlDsaKey(mlDsaKeyPem(SEED));
  const { bundle } = await makeSample(service, ['log', 'cosigner']);
  const trustRoots = makeTrustRoots(service);
  const policy = { required: ['w1'] };
  const verify = (given: unknown, roots: unknown = trustRoots) =>
    verifyBundle(given, { artifact: ARTIFACT, trustRoots: roots, policy, now: NOW });
  const { verdict, steps } = await verify(bundle);
  t.equal(verdict, 'verified');
  const cosigned = steps[5]!.checks.filter(({ code }) => code === 'checkpoint.cosigned');
  t.equal(cosigned.length, 2, 'both signatures stand in the note');

  const [first, second] = trustRoots.logWitnesses;
  for (const known of [first!, second!]) {
    t.equal((await verify(bundle, { ...trustRoots, logWitnesses: [known] })).verdict, 'verified');
  }
  for (const line of new TextDecoder().decode(bundle.witnesses[1]!.evidence).trimEnd().split('\n')) {
    const changed = line.replace(/.{6}$/, (end) => (end.startsWith('A') ? 'B' : 'A') + end.slice(1));
    t.not(changed, line);
    const forged = {
      ...bundle,
      checkpoints: bundle.checkpoints.map((one) => ({ ...one, note: one.note.replace(line, changed) })),
    };
    const witnesses = bundle.witnesses.map((one) => ({
      ...one,
      evidence: utf8(new TextDecoder().decode(one.evidence).replace(line, changed)),
    }));
    const { verdict, steps } = await verify({ ...forged, witnesses });
    t.equal(verdict, 'not_verified');
    t.equal(steps[6]!.code, 'witness.bad_cosignature');
  }
});

t.test('a signature has one line', async (t) => {
  const line = cosign(BODY, TIME, mlDsa);
  const text = encodeSignatureLine(line);
  t.equal(text.length, `— ${NAME} `.length + 3244 + 1);
  t.strictSame(parseNote(`${BODY}\n${text}`).signatures, [line]);
});
