import fc from 'fast-check';
import t from 'tap';
import { concatBytes, fromHex, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { encodeVarbytes, encodeVaruint, readBytes } from '../../../src/proof/opentimestamps/byte-reader.js';
import { parseCalendarAnswer } from '../../../src/proof/opentimestamps/calendar-answer.js';
import { encodeOts, parseOts, parseOtsOf } from '../../../src/proof/opentimestamps/detached-file.js';
import { append, applyOperation, prepend, SHA256 } from '../../../src/proof/opentimestamps/operation.js';
import {
  attestationsOf,
  graftTimestamp,
  makeTimestamp,
  mergeTimestamps,
  pathTo,
  timestampAfter,
} from '../../../src/proof/opentimestamps/timestamp.js';
import { encodeTimestamp } from '../../../src/proof/opentimestamps/timestamp-codec.js';
import { FUZZ } from '../../support/fuzz.js';
import { timestampOf } from './arbitrary.js';

const DIGEST = sha256(utf8('a file'));
const BITCOIN = fromHex('000588960d73d719010105');
const PENDING_TAG = '0083dfe30d2ef90c8e';
const bitcoin = (height: number) => ({ kind: 'bitcoin', height }) as const;

function answer(...parts: (Uint8Array | string)[]) {
  const bytes = concatBytes(...parts.map((part) => (typeof part === 'string' ? fromHex(part) : part)));
  return parseCalendarAnswer(DIGEST, bytes);
}

function pending(uri: string): Uint8Array {
  return concatBytes(fromHex(PENDING_TAG), encodeVarbytes(encodeVarbytes(utf8(uri))));
}

t.test('an answer is read as the format says', async (t) => {
  const found = answer('f0020102', 'ff', pending('https://a.example'), '08', BITCOIN);
  const message = concatBytes(DIGEST, Uint8Array.of(1, 2));
  t.strictSame(attestationsOf(found), [
    { message, attestation: { kind: 'pending', uri: 'https://a.example' } },
    { message: sha256(message), attestation: bitcoin(5) },
  ]);
});

t.test('items in another order or repeated mean the same, and are written in one order', async (t) => {
  const messy = answer(
    'ff08',
    'ff',
    BITCOIN,
    BITCOIN,
    'ff08',
    pending('x'),
    'ff',
    pending('b'),
    pending('a'),
  );
  const neat = answer('ff', pending('a'), 'ff', pending('b'), '08', 'ff', BITCOIN, pending('x'));
  t.strictSame(messy, neat);
});

t.test('malformed input is rejected', async (t) => {
  const wrong: Record<string, (Uint8Array | string)[]> = {
    'nothing at all': [],
    'an unknown operation': ['f4', BITCOIN],
    'an operation that leads to nothing': ['08'],
    'an attestation without tag': ['0005'],
    'bytes after the end': [BITCOIN, '00'],
    'an argument that is missing': ['f0', '05', '0102'],
    'an empty argument': ['f000', BITCOIN],
    'an argument of 4,097 bytes': ['f0', encodeVarbytes(new Uint8Array(4_097)), BITCOIN],
    'a message of 4,097 bytes': ['f0', encodeVarbytes(new Uint8Array(4_097 - 32)), BITCOIN],
    'a message that grows to 8,000 bytes in hex': [
      'f0',
      encodeVarbytes(new Uint8Array(3_968)),
      'f3',
      BITCOIN,
    ],
    'a length of 2^40': ['f0', 'ffffffffff7f', BITCOIN],
    'a length with a needless byte': ['f0', '8100', '01', BITCOIN],
    'a height with a needless byte': ['000588960d73d71901', '02', '8500'],
    'a height of 2^32': ['000588960d73d71901', '05', '8080808010'],
    'a height and a further byte': ['000588960d73d71901', '02', '0505'],
    'a payload of 8,193 bytes': ['001122334455667788', encodeVarbytes(new Uint8Array(8_193))],
    'a URI of 1,001 bytes': [pending('a'.repeat(1_001))],
    'a URI with a query': [pending('https://a.example/?x')],
    'a URI with a user': [pending('https://a@b.example')],
    'a URI with a line break': [pending('https://a.example/\n')],
    'a URI with a percent sign': [pending('https://a.example/%2e')],
    'a fork without end': ['ff', BITCOIN],
    'two forks in a row': ['ffff', BITCOIN],
  };
  for (const [what, parts] of Object.entries(wrong)) t.throws(() => answer(...parts), FormatError, what);
  t.throws(() => answer(...Array(20).fill(pending('a'.repeat(1_000))), BITCOIN), {
    message: 'an answer longer than 10,000 bytes',
  });
});

t.test('depth and number of items are bounded', async (t) => {
  const deep = (operations: number) => answer('08'.repeat(operations), BITCOIN);
  t.equal(attestationsOf(deep(255)).length, 1, 'as deep as other implementations read');
  t.throws(() => deep(256), { message: /256 messages in a row/ });
  t.throws(() => answer('08'.repeat(9_000), BITCOIN), { message: /256 messages in a row/ });
  const branch = concatBytes(fromHex(`ff02${'08'.repeat(250)}`), BITCOIN);
  t.throws(() => answer(...Array(3).fill(branch), BITCOIN), { message: /512 items/ });
  const many = Array.from({ length: 16_385 }, (_, height) => bitcoin(height));
  t.throws(() => encodeTimestamp(makeTimestamp(DIGEST, many)), { message: /16384 items/ });
  t.equal(encodeTimestamp(makeTimestamp(DIGEST, many.slice(1))).length > 160_000, true);
  const tooDeep = timestampAfter(DIGEST, Array(256).fill(SHA256), (end) => makeTimestamp(end, [bitcoin(1)]));
  t.throws(() => encodeTimestamp(tooDeep), { message: /256 messages in a row/ }, 'nor is it written');
  t.throws(() => encodeTimestamp(makeTimestamp(DIGEST, [])), { message: /no attestation/ });
});

t.test('a file is its header, its hash, its digest and a timestamp', async (t) => {
  const file = encodeOts(makeTimestamp(DIGEST, [bitcoin(5)]));
  t.equal(
    toHex(file),
    `004f70656e54696d657374616d7073000050726f6f6600bf89e2e884e892940108${toHex(DIGEST)}${toHex(BITCOIN)}`,
  );
  t.strictSame(parseOts(file), { hashTag: 0x08, timestamp: makeTimestamp(DIGEST, [bitcoin(5)]) });
  const sha1 = encodeOts(makeTimestamp(DIGEST.slice(0, 20), [bitcoin(5)]), 0x02);
  t.equal(parseOts(sha1).timestamp.message.length, 20, 'of other hashes as well');
  t.throws(() => parseOtsOf(DIGEST, sha1), { message: /another digest/ });
  t.throws(() => parseOtsOf(sha256(DIGEST), file), { message: /another digest/ });
  t.throws(() => parseOts(file.with(31, 2)), { message: /another version/ });
  t.throws(() => parseOts(file.with(32, 0xf0)), { message: /unknown hash/ });
  t.throws(() => parseOts(utf8('PK')), FormatError);
  t.throws(() => parseOts(new Uint8Array(256 * 1024 + 1)), { message: /256 KiB/ });
});

t.test('integers are in LEB128, up to 2^32 - 1', async (t) => {
  for (const value of [0, 127, 128, 300, 16_384, 2 ** 31, 2 ** 32 - 1]) {
    t.equal(
      readBytes(encodeVaruint(value), (reader) => reader.varuint()),
      value,
    );
  }
  t.equal(toHex(encodeVaruint(300)), 'ac02');
});

t.test('operations make the digests that others make', async (t) => {
  const abc = utf8('abc');
  const made = (tag: number) => toHex(applyOperation({ tag }, abc));
  t.equal(made(0x02), 'a9993e364706816aba3e25717850c26c9cd0d89d');
  t.equal(made(0x03), '8eb208f7e05d987a9b044a8e98c6b087f15a0bfc');
  t.equal(made(0x08), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  t.equal(made(0x67), '4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45');
  t.equal(made(0xf2), '636261');
  t.equal(made(0xf3), toHex(utf8('616263')));
  t.throws(() => applyOperation({ tag: 0xf3 }, new Uint8Array()), FormatError);
});

t.test('merging keeps every branch', async (t) => {
  await fc.assert(
    fc.asyncProperty(timestampOf(DIGEST), timestampOf(DIGEST), async (a, b) => {
      const merged = mergeTimestamps(a, b);
      for (const one of [a, b]) t.strictSame(mergeTimestamps(merged, one), merged);
      const all = new Set(attestationsOf(merged).map((one) => JSON.stringify(one)));
      const parts = [...attestationsOf(a), ...attestationsOf(b)].map((one) => JSON.stringify(one));
      t.strictSame(new Set(parts), all);
    }),
    { seed: FUZZ.seed, numRuns: FUZZ.cases },
  );
  t.throws(() => mergeTimestamps(makeTimestamp(DIGEST, []), makeTimestamp(sha256(DIGEST), [])), FormatError);
});

t.test('an upgrade is merged where its message is', async (t) => {
  const operations = [append(Uint8Array.of(1)), SHA256];
  const calendar = { kind: 'pending', uri: 'https://a.example' } as const;
  const waiting = timestampAfter(DIGEST, operations, (end) => makeTimestamp(end, [calendar]));
  const { message } = attestationsOf(waiting)[0]!;
  const upgraded = graftTimestamp(waiting, makeTimestamp(message, [bitcoin(7)]));
  t.strictSame(attestationsOf(upgraded), [
    { message, attestation: bitcoin(7) },
    { message, attestation: calendar },
  ]);
  const elsewhere = makeTimestamp(sha256(message), [bitcoin(7)]);
  t.strictSame(graftTimestamp(waiting, elsewhere), waiting);
});

t.test('a path has one attestation and nothing beside it', async (t) => {
  const branch = (byte: number, height: number) => ({
    operation: prepend(Uint8Array.of(byte)),
    timestamp: makeTimestamp(concatBytes(Uint8Array.of(byte), DIGEST), [bitcoin(height), bitcoin(100)]),
  });
  const forked = makeTimestamp(DIGEST, [bitcoin(1)], [branch(1, 2), branch(2, 3)]);
  const { attestation } = attestationsOf(forked).find(
    (one) => one.attestation.kind === 'bitcoin' && one.attestation.height === 3,
  )!;
  const path = pathTo(forked, attestation)!;
  t.strictSame(attestationsOf(path), [{ message: concatBytes(Uint8Array.of(2), DIGEST), attestation }]);
  t.equal(path.steps.length, 1);
  t.equal(pathTo(forked, bitcoin(3)), undefined, 'of an attestation of the timestamp itself');
});
