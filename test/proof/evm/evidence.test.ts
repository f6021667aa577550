import * as fc from 'fast-check';
import t from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { jcs } from '../../../src/proof/bytes/jcs.js';
import { decodeEvmEvidence, encodeEvmEvidence, evmDetail } from '../../../src/proof/evm/evidence.js';
import { FUZZ } from '../../support/fuzz.js';

const hex = (length: number) =>
  fc
    .uint8Array({ minLength: length, maxLength: length })
    .map((bytes) => `0x${Buffer.from(bytes).toString('hex')}`);

const fields = {
  chainId: fc.maxSafeNat(),
  contract: hex(20),
  digest: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  transactionHash: hex(32),
  blockNumber: fc.maxSafeNat(),
  blockHash: hex(32),
  blockTimestamp: fc.nat({ max: 253_402_300_799 }),
  logIndex: fc.nat(),
};
const evidences = fc.record(fields, { noNullPrototype: true });

t.test('evidence is decoded as it was encoded, and has a detail', async (t) => {
  fc.assert(
    fc.property(evidences, (evidence) => {
      t.strictSame(decodeEvmEvidence(encodeEvmEvidence(evidence)), evidence);
      const { block_time, ...others } = evmDetail(evidence);
      return String(block_time).endsWith('Z') && Object.keys(others).length === 7;
    }),
    { seed: FUZZ.seed, numRuns: FUZZ.cases },
  );
});

t.test('changed bytes are another evidence or none', async () => {
  const places = fc.tuple(evidences, fc.nat(), fc.integer({ min: 1, max: 255 }));
  fc.assert(
    fc.property(places, ([evidence, place, flip]) => {
      const bytes = Uint8Array.from(encodeEvmEvidence(evidence));
      bytes[place % bytes.length]! ^= flip;
      try {
        const encoded = encodeEvmEvidence(decodeEvmEvidence(bytes));
        return Buffer.compare(encoded, bytes) === 0;
      } catch (error) {
        return error instanceof FormatError;
      }
    }),
    { seed: FUZZ.seed, numRuns: 20 * FUZZ.cases },
  );
});

const [sample] = fc.sample(evidences, { seed: FUZZ.seed, numRuns: 1 });
const members = JSON.parse(Buffer.from(encodeEvmEvidence(sample!)).toString()) as object;

t.test('evidence of another form is malformed', async (t) => {
  const changes: [what: string, change: object][] = [
    ['a member more', { extra: 1 }],
    ['a member less', { digest: undefined }],
    ['capitals', { digest: 'AB'.repeat(32) }],
    ['no 0x', { block_hash: '00'.repeat(32) }],
    ['too short', { contract: `0x${'00'.repeat(19)}` }],
    ['another method', { method: 'eas' }],
    ['a fraction', { log_index: 0.5 }],
    ['negative', { block_number: -1 }],
    ['text for a number', { chain_id: '1' }],
    ['too large', { chain_id: 2 ** 53 }],
    ['after the year 9999', { block_timestamp: 253_402_300_800 }],
  ];
  for (const [what, change] of changes) {
    t.throws(
      () => decodeEvmEvidence(utf8(jcs(JSON.parse(JSON.stringify({ ...members, ...change }))))),
      FormatError,
      what,
    );
  }
  const text = jcs(members);
  const texts = [
    '',
    'null',
    '7',
    '[]',
    '{}',
    `${text} `,
    ` ${text}`,
    text.slice(1),
    `[${text}]`,
    ' '.repeat(2_000),
  ];
  for (const other of texts) t.throws(() => decodeEvmEvidence(utf8(other)), FormatError, other.slice(0, 20));
  t.throws(() => decodeEvmEvidence(Uint8Array.of(0xff)), FormatError);
  t.strictSame(decodeEvmEvidence(utf8(text)), sample);
});
