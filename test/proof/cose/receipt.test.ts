/** COSE receipts: the encoding byte by byte, and what a verifier refuses. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { toPem } from '../../../src/proof/asn1/pem.js';
import { fromHex, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { type CborValue, decodeCbor, encodeCbor } from '../../../src/proof/cose/cbor.js';
import {
  encodeReceipt,
  encodeReceiptHeader,
  parseReceipt,
  receiptToSign,
} from '../../../src/proof/cose/receipt.js';
import { leafHash } from '../../../src/proof/log/merkle.js';
import { extendTiles, readFrom } from '../../../src/proof/log/tile.js';
import { inclusionProof } from '../../../src/proof/log/tile-proof.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { verifyReceipt } from '../../../src/proof/verify/verify-receipt.js';
import { deriveReceiptKey } from '../../../src/server/keys/receipt-key.js';
import { ARTIFACT, makeService, NOW, SUBMISSION_ID } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { makeTrustRoots } from '../sample-trust-roots.js';

const service = await makeService(t.testdir());
const logKey = generateKeyPairSync('ed25519').privateKey;
const key = deriveReceiptKey(logKey, service.origin);
const SIZE = 11;
const INDEX = 6;
const leaves = Array.from({ length: SIZE }, (_, i) => leafHash(utf8(`leaf ${i}`)));
const { root, tiles } = extendTiles({ size: 0, tiles: [] }, leaves);
const path = inclusionProof(INDEX, SIZE, readFrom(tiles));
const header = { issuer: service.origin, subject: SUBMISSION_ID, size: SIZE, keyId: sha256(key.spki) };

function makeReceipt(
  change: { header?: Partial<typeof header>; path?: Uint8Array[]; root?: Uint8Array } = {},
) {
  const protectedHeader = encodeReceiptHeader({ ...header, ...change.header });
  const signature = sign('sha256', receiptToSign(protectedHeader, change.root ?? root), {
    key: key.privateKey,
    dsaEncoding: 'ieee-p1363',
  });
  return encodeReceipt({ protectedHeader, size: SIZE, index: INDEX, path: change.path ?? path, signature });
}

const [log] = makeTrustRoots(service).transparencyLogs;
const published = { ...log!, receiptPublicKeyPem: toPem('PUBLIC KEY', key.spki) };
const trustRoots = makeTrustRoots(service, { transparencyLogs: [published] });
const asked = {
  leafHash: leaves[INDEX]!,
  submissionId: SUBMISSION_ID,
  trustRoots: trustRoots as unknown,
  now: NOW,
};

t.test('CBOR has one encoding of each value, that of RFC 8949', async (t) => {
  const vectors: [value: CborValue, hex: string][] = [
    [0, '00'],
    [23, '17'],
    [24, '1818'],
    [255, '18ff'],
    [256, '190100'],
    [65_535, '19ffff'],
    [65_536, '1a00010000'],
    [2 ** 32, '1b0000000100000000'],
    [2 ** 53 - 1, '1b001fffffffffffff'],
    [-1, '20'],
    [-7, '26'],
    [-500, '3901f3'],
    [null, 'f6'],
    ['IETF', '6449455446'],
    [Uint8Array.of(1, 2, 3, 4), '4401020304'],
    [[1, [2, 3]], '82018202 03'.replace(' ', '')],
    [
      new Map<number, CborValue>([
        [-1, 1],
        [396, 2],
        [1, 3],
      ]),
      'a3010319018c022001',
    ],
    [{ tag: 18, value: [] }, 'd280'],
  ];
  for (const [value, hex] of vectors) {
    t.equal(toHex(encodeCbor(value)), hex);
    t.same(decodeCbor(fromHex(hex)), value);
  }
  for (const value of [0.5, 2 ** 53, Number.NaN]) t.throws(() => encodeCbor(value), RangeError);
});

t.test('CBOR in any other encoding is rejected, and bounded', async (t) => {
  const wrong = {
    'longer than need be': [
      '1817',
      '1900ff',
      '1a0000ffff',
      '1b00000000ffffffff',
      '5803010203',
      'd8128 0'.replace(' ', ''),
    ],
    'without a definite length': ['5f41014102ff', '9f01ff', 'bf0101ff'],
    'is cut off': [
      '',
      '18',
      '19ff',
      '43',
      '4301',
      '82',
      '8201',
      'a1',
      'a101',
      'd2',
      '5b001fffffffffffff',
      '9b001fffffffffffff',
    ],
    'is not in order': ['a2020101 01'.replace(' ', ''), 'a201010101', 'a220010001'],
    'no integer': ['a1616101', 'a1410101', 'a1f601'],
    'unknown kind': ['f4', 'f5', 'f7', 'f0', 'f93c00', 'fa3f800000'],
    '2\\^53': ['1bffffffffffffffff', '1b0020000000000000'],
    'bytes follow': ['0000', 'f6f6'],
    'UTF-8': ['61ff'],
    'too deep': [`${'81'.repeat(9)}00`],
    'more than 16384 bytes': [`594001${'00'.repeat(0x4001)}`],
  };
  for (const [reason, texts] of Object.entries(wrong)) {
    for (const hex of texts) t.throws(() => decodeCbor(fromHex(hex)), { message: new RegExp(reason) }, hex);
  }
});

t.test('a receipt is that of RFC 9942, and reads as it was written', async (t) => {
  const bytes = makeReceipt();
  t.match(
    toHex(bytes),
    /^d28458[0-9a-f]{2}a40126045820/,
    'COSE_Sign1, and ES256 and the key id in the header',
  );
  const receipt = parseReceipt(bytes);
  t.match(receipt, { ...header, size: SIZE, index: INDEX, path });
  t.equal(toHex(receipt.protectedHeader).slice(-8), '19018b01', 'the data structure is RFC9162_SHA256');
  t.throws(() => makeReceipt({ path: [] }), RangeError);
  const verified = await verifyReceipt(bytes, asked);
  t.match(verified, { check: { status: 'passed' }, origin: service.origin, logIndex: INDEX, treeSize: SIZE });
});

t.test('a receipt is rejected with any byte changed, cut off or added', async (t) => {
  const bytes = makeReceipt();
  for (let at = 0; at < bytes.length; at++) {
    for (const flip of [0x01, 0x80]) {
      const changed = Uint8Array.from(bytes);
      changed[at]! ^= flip;
      t.equal((await verifyReceipt(changed, asked)).check.status, 'failed', `byte ${at}`);
    }
    t.equal((await verifyReceipt(bytes.subarray(0, at), asked)).check.status, 'failed', `cut at ${at}`);
  }
  t.equal((await verifyReceipt(Buffer.concat([bytes, Buffer.alloc(1)]), asked)).check.status, 'failed');
});

t.test('a receipt is rejected for another leaf, submission, log, key, environment or time', async (t) => {
  const code = async (
    change: Partial<typeof asked> & { environment?: 'live' | 'test' },
    receipt = makeReceipt(),
  ) => (await verifyReceipt(receipt, { ...asked, ...change })).check.code;
  const ended = { ...published, validTo: timestampFromDate(new Date(NOW.getTime() - 1_000)) };
  const strange = { ...published, receiptPublicKeyPem: toPem('PUBLIC KEY', service.dsse.publicKey) };
  const rooted = (logs: object) => ({ trustRoots: makeTrustRoots(service, { transparencyLogs: [logs] }) });
  t.equal(await code({}), 'receipt.valid');
  t.equal(await code({ leafHash: leaves[0]! }), 'receipt.invalid');
  t.equal(await code({ submissionId: 'sub_other' }), 'receipt.other_submission');
  t.equal(await code({ environment: 'test' }), 'receipt.wrong_environment');
  t.equal(await code(rooted(strange)), 'receipt.unknown_key');
  t.equal(await code(rooted(log!)), 'receipt.unknown_key');
  t.equal(await code(rooted(ended)), 'receipt.log_ended');
  t.equal(await code({ trustRoots: {} }), 'receipt.no_trust');
  t.equal(await code({}, makeReceipt({ header: { issuer: 'other.example' } })), 'receipt.unknown_key');
  t.equal(await code({}, makeReceipt({ header: { size: SIZE - 1 } })), 'receipt.malformed');
  t.equal(await code({}, makeReceipt({ root: leaves[0]! })), 'receipt.invalid');
  t.equal(await code({}, makeReceipt({ path: [...path, leaves[0]!] })), 'receipt.invalid');
  t.equal(await code({}, makeReceipt({ path: path.slice(1) })), 'receipt.invalid');
});

t.test('a receipt beside a bundle has to be about the same submission', async (t) => {
  const { bundle } = await makeSample(service);
  const options = { artifact: ARTIFACT, trustRoots, now: NOW };
  t.equal((await verifyBundle(bundle, options)).verdict, 'verified');
  const other = await verifyBundle(bundle, { ...options, receipt: makeReceipt() });
  t.equal(other.verdict, 'not_verified');
  t.match(other.steps[4], { name: 'inclusion', status: 'failed', code: 'receipt.invalid' });
});

t.test('the key of receipts follows from the key and the origin of the log', async (t) => {
  t.same(deriveReceiptKey(logKey, service.origin).spki, key.spki);
  t.notSame(deriveReceiptKey(logKey, 'other.example').spki, key.spki);
  t.notSame(deriveReceiptKey(generateKeyPairSync('ed25519').privateKey, service.origin).spki, key.spki);
});
