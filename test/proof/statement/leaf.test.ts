import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto';
import canonicalize from 'canonicalize';
import t from 'tap';
import { fromBase64, fromHex, fromUtf8, toBase64, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { jcs, jcsBytes } from '../../../src/proof/bytes/jcs.js';
import {
  ed25519Spki,
  hmacSha256,
  sha256,
  verifyEcdsaP256Sha256,
  verifyEd25519,
} from '../../../src/proof/bytes/primitives.js';
import {
  dsseEnvelope,
  dsseKeyHint,
  IN_TOTO_PAYLOAD_TYPE,
  preAuthEncoding,
} from '../../../src/proof/statement/dsse.js';
import { leafOf, leafRecord, rebuildLeaf } from '../../../src/proof/statement/leaf.js';
import {
  metadataCommitment,
  type StatementFields,
  statementBytes,
} from '../../../src/proof/statement/statement.js';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const spki = new Uint8Array(publicKey.export({ type: 'spki', format: 'der' }));
const signer = {
  publicKey: spki,
  sign: (data: Uint8Array) => new Uint8Array(sign('sha256', data, privateKey)),
};
const fields: StatementFields = {
  artifactSha256: 'ab'.repeat(32),
  submissionId: 'sub_01JZZZZZZZZZZZZZZZZZZZZZZZ',
  project: 'prj_01JZZZZZZZZZZZZZZZZZZZZZZZ',
  submittedAt: '2025-06-07T08:09:10.011Z',
  environment: 'live',
  schema: 'purl',
  commitment: 'cd'.repeat(32),
};

t.test('canonical JSON is that of the vectors of RFC 8785', async (t) => {
  const example =
    '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
    '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}';
  const bytes =
    '7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a5b333333333333333333' +
    '2e333333333333332c31652b33302c342e352c302e3030322c31652d32375d2c22737472696e67223a22e282ac245c7530' +
    '3030665c6e4127425c225c5c5c5c5c222f227d';
  t.equal(toHex(jcsBytes(JSON.parse(example))), bytes);
  const keys = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6'];
  const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'];
  t.strictSame(
    Object.keys(JSON.parse(jcs(Object.fromEntries(keys.map((key) => [key, 0]))))).sort(),
    [...sorted].sort(),
  );
  t.equal(
    jcs(Object.fromEntries(keys.map((key) => [key, 0]))),
    `{${sorted.map((key) => `${JSON.stringify(key)}:0`).join(',')}}`,
  );
});

t.test('canonical JSON formats numbers as in RFC 8785, appendix B', async (t) => {
  const table: [ieee754: string, text: string][] = [
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ];
  for (const [ieee754, text] of table) t.equal(jcs(Buffer.from(ieee754, 'hex').readDoubleBE()), text);
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, '\ud800', undefined, cycle, { a: '\udc00' }]) {
    t.throws(() => jcs(bad), FormatError);
  }
});

t.test('a statement is the JCS of its in-toto statement', async (t) => {
  const odd = ['purl', 'a"b', 'back\\slash', 'tab\t\u0001\u007f\u2028', 'é€😀', '</script>'];
  for (const schema of odd) {
    const statement = {
      subject: [{ digest: { sha256: fields.artifactSha256 } }],
      predicateType: 'urn:attestation-service:submission:v1',
      predicate: {
        submission_id: fields.submissionId,
        project: fields.project,
        submitted_at: fields.submittedAt,
        environment: fields.environment,
        metadata: { schema, commitment: fields.commitment },
      },
      _type: 'https://in-toto.io/Statement/v1',
    };
    t.equal(fromUtf8(statementBytes({ ...fields, schema })), canonicalize(statement));
  }
});

t.test('a leaf record is the JCS of its hashedrekord entry', async (t) => {
  const parts = { digest: sha256(utf8('x')), signature: new Uint8Array(72).fill(0xfb), publicKey: spki };
  const entry = {
    kind: 'hashedrekord',
    apiVersion: '0.0.2',
    spec: {
      hashedRekordV002: {
        signature: {
          verifier: {
            publicKey: { rawBytes: Buffer.from(spki).toString('base64') },
            keyDetails: 'PKIX_ECDSA_P256_SHA_256',
          },
          content: Buffer.from(parts.signature).toString('base64'),
        },
        data: { digest: Buffer.from(parts.digest).toString('base64'), algorithm: 'SHA2_256' },
      },
    },
  };
  t.equal(fromUtf8(leafRecord(parts)), canonicalize(entry));
});

t.test('a leaf rebuilt from statement, signature and key is the leaf that was made', async (t) => {
  const statement = statementBytes(fields);
  const pae = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, statement);
  const leaf = leafOf(pae, signer.sign(pae), spki);
  t.strictSame(rebuildLeaf(statement, leaf.signature, spki), leaf);
  t.equal(toHex(leaf.hash), createHash('sha256').update('\0').update(leaf.record).digest('hex'));
  t.ok(await verifyEcdsaP256Sha256(spki, pae, leaf.signature));
  const entry = JSON.parse(fromUtf8(leaf.record));
  t.equal(entry.spec.hashedRekordV002.data.digest, createHash('sha256').update(pae).digest('base64'));
  t.notSame(rebuildLeaf(statementBytes({ ...fields, schema: 'x' }), leaf.signature, spki).hash, leaf.hash);
});

t.test('DSSE signs type and payload with their lengths in bytes', async (t) => {
  t.equal(
    fromUtf8(preAuthEncoding('http://example.com/HelloWorld', utf8('hello world'))),
    'DSSEv1 29 http://example.com/HelloWorld 11 hello world',
  );
  t.equal(fromUtf8(preAuthEncoding('é', utf8('€'))), 'DSSEv1 2 é 3 €');
  t.strictSame(dsseEnvelope(utf8('{}'), Uint8Array.of(1, 2)), {
    payload: 'e30=',
    payloadType: 'application/vnd.in-toto+json',
    signatures: [{ keyid: '', sig: 'AQI=' }],
  });
  t.equal(dsseKeyHint(spki), createHash('sha256').update(spki).digest('base64'));
});

t.test('a commitment is opened by its salt and metadata and by nothing else', async (t) => {
  const salt = new Uint8Array(32).fill(9);
  const metadata = jcsBytes({ schema: 'purl', purl: 'pkg:npm/tap@21.8.0' });
  const commitment = metadataCommitment(salt, metadata);
  t.equal(commitment, createHmac('sha256', salt).update(metadata).digest('hex'));
  t.not(metadataCommitment(new Uint8Array(32).fill(8), metadata), commitment);
  t.not(metadataCommitment(salt, jcsBytes({ schema: 'purl' })), commitment);
});

t.test('hex and base64 are canonical', async (t) => {
  const bytes = Uint8Array.of(0, 1, 0xfb, 0xff, 0x3e);
  t.strictSame(fromHex(toHex(bytes)), bytes);
  t.strictSame(fromBase64(toBase64(bytes)), bytes);
  t.strictSame(fromBase64(''), new Uint8Array(0));
  for (const bad of ['0', 'AB', 'zz', '0 ', ' 00', '00\n', '0x00'])
    t.throws(() => fromHex(bad), FormatError, bad);
  for (const bad of ['A', 'AA', 'AA=', 'AB==', 'AAA', 'AAB=', 'AA==\n', ' AA==', 'A-__', 'AA==AA==', '=']) {
    t.throws(() => fromBase64(bad), FormatError, bad);
  }
  t.throws(() => fromHex('00', 2), FormatError);
  t.throws(() => fromBase64('AA==', 2), FormatError);
  t.throws(() => fromUtf8(Uint8Array.of(0xc0, 0x80)), FormatError);
  t.throws(() => fromUtf8(Uint8Array.of(0xed, 0xa0, 0x80)), FormatError);
  t.equal(fromUtf8(utf8('\ufeffa')), '\ufeffa');
});

t.test('signatures of another key, curve or form are false, never an exception', async (t) => {
  const data = utf8('data');
  const signature = signer.sign(data);
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const ed = generateKeyPairSync('ed25519');
  const edSpki = new Uint8Array(ed.publicKey.export({ type: 'spki', format: 'der' }));
  const edRaw = edSpki.slice(-32);
  const edSignature = new Uint8Array(sign(null, data, ed.privateKey));
  const p384Spki = new Uint8Array(p384.publicKey.export({ type: 'spki', format: 'der' }));
  t.ok(await verifyEcdsaP256Sha256(spki, data, signature));
  t.ok(await verifyEd25519(edRaw, data, edSignature));
  t.ok(await verifyEd25519(edSpki, data, edSignature));
  t.strictSame(ed25519Spki(edRaw), edSpki);
  const bad: Promise<boolean>[] = [
    verifyEcdsaP256Sha256(spki, utf8('datb'), signature),
    verifyEcdsaP256Sha256(spki, data, signature.slice(1)),
    verifyEcdsaP256Sha256(spki, data, new Uint8Array(0)),
    verifyEcdsaP256Sha256(new Uint8Array(0), data, signature),
    verifyEcdsaP256Sha256(spki.slice(0, -1), data, signature),
    verifyEcdsaP256Sha256(p384Spki, data, new Uint8Array(sign('sha256', data, p384.privateKey))),
    verifyEcdsaP256Sha256(edSpki, data, edSignature),
    verifyEd25519(edRaw, utf8('datb'), edSignature),
    verifyEd25519(edRaw.slice(1), data, edSignature),
    verifyEd25519(edRaw, data, edSignature.slice(1)),
    verifyEd25519(spki, data, signature),
  ];
  t.strictSame(
    await Promise.all(bad),
    bad.map(() => false),
  );
});

t.test('hashes are plain byte arrays whose slices are copies', async (t) => {
  for (const hash of [sha256(utf8('a')), sha256(utf8('a'), utf8('b')), hmacSha256(utf8('k'), utf8('a'))]) {
    hash.slice(0, 1).fill(hash[0]! ^ 1);
    t.equal(Object.getPrototypeOf(hash), Uint8Array.prototype);
  }
  t.equal(toHex(sha256(utf8('a'), utf8('b'))), createHash('sha256').update('ab').digest('hex'));
});
