import t from 'tap';
import { fromHex, toHex } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import {
  latestTimeOf,
  parseBlockHeader,
  toDisplayHex,
} from '../../../src/proof/opentimestamps/block-header.js';
import { mineHeader } from '../../support/witnesses/opentimestamps/block.js';

/** Block 0 of Bitcoin. */
const GENESIS = fromHex(
  `01000000${'00'.repeat(32)}3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c`,
);

t.test('Bitcoin’s first block is read', async (t) => {
  const header = parseBlockHeader(GENESIS);
  t.equal(header.hash, '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f');
  t.equal(
    toDisplayHex(header.merkleRoot),
    '4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b',
  );
  t.equal(header.time.toISOString(), '2009-01-03T18:15:05.000Z');
  t.equal(latestTimeOf(header).toISOString(), '2009-01-03T20:15:05.000Z', 'clocks may differ by two hours');
});

t.test('a header with any changed byte lacks proof of work and is rejected', async (t) => {
  for (let i = 0; i < GENESIS.length; i++) {
    t.throws(() => parseBlockHeader(GENESIS.with(i, GENESIS[i]! ^ 0x01)), FormatError, `byte ${i}`);
  }
});

t.test('a header of another length, or with a target that is none, is rejected', async (t) => {
  const withBits = (bits: number) => {
    const header = Buffer.from(GENESIS);
    header.writeUInt32LE(bits, 72);
    return () => parseBlockHeader(header);
  };
  t.throws(() => parseBlockHeader(GENESIS.slice(1)), { message: /80 bytes/ });
  t.throws(() => parseBlockHeader(new Uint8Array(81)), { message: /80 bytes/ });
  const targets = { zero: 0x1d000000, negative: 0x1d800001, huge: 0x23000001, endless: 0xff7fffff };
  for (const [what, bits] of Object.entries(targets)) {
    t.throws(withBits(bits), { message: /no valid target/ }, what);
  }
  t.throws(withBits(0x01010000), { message: /no proof of work/ }, 'a target of one');
});

t.test('blocks of a test network are read', async (t) => {
  const root = sha256(new Uint8Array());
  const header = mineHeader(root, 1_700_000_000);
  t.strictSame(parseBlockHeader(header).merkleRoot, root);
  t.match(parseBlockHeader(header).hash, /^[0-7]/);
  t.equal(toHex(header).length, 160);
});
