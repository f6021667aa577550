/** Signed statements of SCITT as they are parsed: good ones, and a table of malformed and hostile ones. */
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { decode, encode } from 'cborg';
import t from 'tap';
import { errorRules } from '../../../../src/protocol/error-rules.js';
import { readSignedStatement } from '../../../../src/server/attestations/scitt/signed-statement.js';
import { ApiError } from '../../../../src/server/core/errors.js';
import { makeCertificate } from '../../../support/certificates/certificates.js';
import {
  encodeInOrder,
  type StatementParts,
  signedStatement,
  tagged,
} from '../../../support/scitt/signed-statement.js';

const USUAL = {
  schema: 'scitt.statement.v1',
  issuer: 'https://vendor.example',
  subject: 'pkg:npm/a@1.0.0',
  algorithm: 'ES256',
  key_id: Buffer.from('key 1').toString('hex'),
  content_type: 'application/json',
};

/** The code and message of the error for a body; undefined if it is a signed statement. */
function refusal(bytes: Uint8Array): string | undefined {
  try {
    readSignedStatement(bytes);
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return `${errorRules(error.code).code} ${error.message}`;
  }
}

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

t.test('the digest is that of the statement as sent, if its unprotected header is empty', async (t) => {
  const bytes = signedStatement();
  t.same(readSignedStatement(bytes), { digest: sha256(bytes), metadata: USUAL });
  const unprotected = new Map([[394, [Buffer.from('a receipt')]]]);
  t.equal(readSignedStatement(signedStatement({ unprotected })).digest, sha256(bytes));
  t.not(readSignedStatement(signedStatement({ payload: Buffer.from('b') })).digest, sha256(bytes));
});

t.test('metadata is taken from the protected header', async (t) => {
  const numbered = signedStatement({
    header: new Map<number, unknown>([
      [3, 50],
      [258, -16],
      [2, [3]],
    ]),
  });
  t.same(readSignedStatement(numbered).metadata, { ...USUAL, content_type: 50 });
  const header = encodeInOrder(
    new Map<number, unknown>([
      [1, -19],
      [
        15,
        new Map([
          [1, 'a'],
          [2, 'b'],
        ]),
      ],
    ]),
  );
  const { metadata } = readSignedStatement(tagged([header, new Map(), new Uint8Array(), new Uint8Array()]));
  t.same(metadata, { schema: 'scitt.statement.v1', issuer: 'a', subject: 'b', algorithm: 'Ed25519' });
});

t.test('a statement with x5chain is signed by its first certificate', async (t) => {
  const dir = t.testdir();
  const [own, other, rsa] = await Promise.all([
    makeCertificate(dir, 'own', {}),
    makeCertificate(dir, 'other', {}),
    makeCertificate(dir, 'rsa', { key: 'rsa' }),
  ]);
  const der = async ({ certFile }: typeof own) => new X509Certificate(await readFile(certFile)).raw;
  const key = createPrivateKey(await readFile(own.keyFile));
  const by = (chain: unknown, parts: StatementParts = {}) =>
    signedStatement({ key, ...parts, header: new Map([[33, chain]]) });
  const certificate = await der(own);
  const expected = { ...USUAL, certificate_sha256: sha256(certificate) };
  t.same(readSignedStatement(by(certificate)).metadata, expected);
  t.same(readSignedStatement(by([certificate, await der(other)])).metadata, expected);
  const notBy = 'scitt.rejected the signature is not by the first certificate of x5chain';
  const changed = by(certificate);
  changed[changed.length - 1]! ^= 1;
  t.equal(refusal(changed), notBy);
  const [members] = [decode(by(certificate).subarray(1), { useMaps: true }) as unknown[]];
  t.equal(refusal(tagged(members!.with(2, Buffer.from('{"a":2}')))), notBy, 'of another payload');
  t.equal(refusal(tagged(members!.with(3, Buffer.alloc(3)))), notBy, 'a short signature');
  t.equal(refusal(by(await der(other))), notBy);
  t.match(refusal(by(await der(rsa))), /scitt.rejected .* is not for ES256/);
  t.match(refusal(by(certificate, { algorithm: -37 })), /scitt.rejected .* is not for PS256/);
  t.match(refusal(by(certificate, { algorithm: -51 })), /scitt.rejected .* is not for ESP384/);
  t.match(refusal(by(certificate.subarray(0, 99))), /scitt.rejected .* cannot be read/);
  t.match(refusal(by(await readFile(own.certFile))), /scitt.rejected .* cannot be read/, 'PEM');
  t.match(refusal(by([])), /scitt.malformed .*x5chain/);
  t.match(refusal(by('text')), /scitt.malformed .*x5chain/);
});

const GOOD = signedStatement();
const withHeader = (header: Uint8Array) => tagged([header, new Map(), Buffer.from('a'), Buffer.alloc(64)]);
const claims = (entries: [unknown, unknown][]) =>
  withHeader(
    encodeInOrder(
      new Map<number, unknown>([
        [1, -7],
        [15, new Map(entries)],
      ]),
    ),
  );
const hex = (text: string) => Buffer.from(text, 'hex');

const MALFORMED: [string, Uint8Array, RegExp][] = [
  ['nothing', new Uint8Array(), /tag of a COSE_Sign1/],
  ['JSON', Buffer.from('{}'), /tag of a COSE_Sign1/],
  ['no tag', GOOD.subarray(1), /tag of a COSE_Sign1/],
  ['a longer tag than need be', Buffer.concat([hex('d812'), GOOD.subarray(1)]), /tag of a COSE_Sign1/],
  ['the tag of a COSE_Mac0', Buffer.concat([hex('d1'), GOOD.subarray(1)]), /tag of a COSE_Sign1/],
  ['the tag twice', Buffer.concat([hex('d2'), GOOD]), /tag not supported/],
  ['the tag alone', hex('d2'), /content/],
  ['bytes that follow', Buffer.concat([GOOD, hex('00')]), /too many terminals/],
  ['an array of three', tagged([new Uint8Array(), new Map(), new Uint8Array()]), /array of four/],
  [
    'an array of five',
    tagged([new Uint8Array(), new Map(), new Uint8Array(), new Uint8Array(), 1]),
    /array of four/,
  ],
  ['a map', tagged(new Map([[1, 2]])), /array of four/],
  ['an array without end', hex('d29f40a04040ff'), /indefinite/],
  ['a byte string without end', hex('d2845f40ffa04040'), /indefinite/],
  ['a map without end', hex('d28440bfff4040'), /indefinite/],
  ['a length of 2^64 - 1', hex('d2845bffffffffffffffff'), /./],
  ['a length of 2^53 - 1', hex('d2845b001fffffffffffff'), /./],
  ['an array of 2^32 items', hex('d29affffffff'), /not enough entries/],
  ['a map of 2^32 entries', hex('d28440baffffffff'), /not enough entries/],
  ['a longer length than need be', hex('d2980440a04040'), /more bytes than necessary/],
  ['arrays 60,000 deep', Buffer.concat([hex('d2'), Buffer.alloc(60_000, 0x81)]), /./],
  ['maps 30,000 deep', Buffer.concat([hex('d2'), Buffer.alloc(60_000, hex('a100'))]), /./],
  ['a header 60,000 deep', withHeader(Buffer.alloc(60_000, 0x81)), /./],
  ['a break', hex('d2ff'), /indefinite/],
  ['undefined', hex('d284f7a04040'), /undefined/],
  [
    'a header that is a map',
    tagged([new Map(), new Map(), new Uint8Array(), new Uint8Array()]),
    /protected header/,
  ],
  [
    'an unprotected header that is bytes',
    tagged([encode(1), new Uint8Array(), new Uint8Array(), new Uint8Array()]),
    /unprotected/,
  ],
  ['an empty protected header', withHeader(new Uint8Array()), /content/],
  ['a protected header that is a list', withHeader(encode([1])), /protected header is not a map/],
  ['a label twice', withHeader(hex('a201260126')), /repeat map key/],
  ['a label that is bytes', withHeader(hex('a24101010126')), /neither an integer nor a text/],
  ['no claims', withHeader(encode(new Map([[1, -7]]))), /CWT claims/],
  ['no issuer', claims([[2, 'b']]), /issuer/],
  ['no subject', claims([[1, 'a']]), /subject/],
  [
    'an issuer that is bytes',
    claims([
      [1, Buffer.from('a')],
      [2, 'b'],
    ]),
    /issuer/,
  ],
  [
    'an empty subject',
    claims([
      [1, 'a'],
      [2, ''],
    ]),
    /subject/,
  ],
  [
    'a subject of 3,000 bytes',
    claims([
      [1, 'a'],
      [2, 'ä'.repeat(1500)],
    ]),
    /more than 2048 bytes/,
  ],
  [
    'a NUL',
    claims([
      [1, 'a\0'],
      [2, 'b'],
    ]),
    /control character/,
  ],
  ['text that is not UTF-8', withHeader(hex('a201260fa20162c328026162')), /UTF-8/],
  ['a key id that is a text', signedStatement({ header: new Map([[4, 'kid']]) }), /key id/],
  ['a key id of 300 bytes', signedStatement({ header: new Map([[4, Buffer.alloc(300)]]) }), /key id/],
  ['a negative content type', signedStatement({ header: new Map([[3, -1]]) }), /content type/],
  ['an empty crit', signedStatement({ header: new Map([[2, []]]) }), /crit/],
  ['a payload that is a text', tagged([new Uint8Array(), new Map(), 'a', new Uint8Array()]), /payload/],
  ['no signature', tagged([new Uint8Array(), new Map(), new Uint8Array(), null]), /signature/],
];

t.test('what is no signed statement is malformed', async (t) => {
  for (const [what, bytes, reason] of MALFORMED) {
    const told = refusal(bytes);
    t.match(told, /^scitt\.malformed the body is not a signed statement: /, what);
    t.match(told, reason, what);
  }
  for (let end = 0; end < GOOD.length; end++)
    t.match(refusal(GOOD.subarray(0, end)), /^scitt\.malformed /, `cut off at ${end}`);
});

t.test('other errors have codes of their own', async (t) => {
  t.match(refusal(signedStatement({ payload: null })), /^scitt\.payload_missing /);
  for (const algorithm of [5, 'ES256', -65_535, null, undefined])
    t.match(
      refusal(signedStatement({ header: new Map([[1, algorithm ?? false]]) })),
      /^scitt\.bad_algorithm /,
    );
  t.match(refusal(signedStatement({ header: new Map([[2, [99]]]) })), /^scitt\.rejected .*crit/);
  t.match(refusal(signedStatement({ header: new Map([[2, [33]]]) })), /^scitt\.rejected .*crit/);
});

t.test('any change of bytes is a statement of another digest, or an error for the caller', async (t) => {
  const { digest } = readSignedStatement(GOOD);
  for (let at = 0; at < GOOD.length; at++) {
    const changed = Uint8Array.from(GOOD);
    changed[at]! ^= 1 + (at % 255);
    if (refusal(changed) === undefined) t.not(readSignedStatement(changed).digest, digest, `at ${at}`);
  }
});
