import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js';
import t from 'tap';
import { mlDsaKeyPem, parseMlDsaKey } from '../../../src/server/keys/ml-dsa-key.js';

const SEED = Uint8Array.from({ length: 32 }, (_, i) => 255 - i);
const DATA = Buffer.from('signed');

/** The form that OpenSSL 3.5 writes: seed and expanded key. */
function bothPem(seed: Uint8Array, expanded: Uint8Array): string {
  const prefix = Buffer.from('30820a3e020100300b060960864801650304031104820a2a30820a260420', 'hex');
  const der = Buffer.concat([prefix, seed, Buffer.from('04820a00', 'hex'), expanded]);
  return `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`;
}

t.test('a key is the same from its seed and from both its forms', async (t) => {
  const { publicKey, secretKey } = ml_dsa44.keygen(SEED);
  for (const pem of [mlDsaKeyPem(SEED), bothPem(SEED, secretKey)]) {
    const key = parseMlDsaKey(pem);
    t.strictSame(key.publicKey, publicKey);
    const signature = key.sign(DATA);
    t.ok(ml_dsa44.verify(signature, DATA, publicKey));
    t.notSame(key.sign(DATA), signature, 'signatures are hedged');
  }
  t.notOk(JSON.stringify(parseMlDsaKey(mlDsaKeyPem(SEED))).includes(Buffer.from(SEED).toString('base64')));
});

t.test('an invalid key is rejected and not quoted', async (t) => {
  const pem = mlDsaKeyPem(SEED);
  const { secretKey } = ml_dsa44.keygen(SEED);
  const bad = [
    '',
    'text',
    pem.replaceAll('PRIVATE KEY', 'PUBLIC KEY'),
    pem.replace('MDQC', 'MDUC'),
    pem.replace(/\n(.{8})/, '\n'),
    `${pem}${pem}`,
    bothPem(SEED.toReversed(), secretKey),
    bothPem(SEED, secretKey.slice(1)),
  ];
  for (const text of bad) {
    const error = t.throws(() => parseMlDsaKey(text)) as unknown as Error;
    t.notMatch(error.message, /[A-Za-z0-9+/=]{24}/);
  }
  t.throws(() => mlDsaKeyPem(SEED.slice(1)), RangeError);
});
