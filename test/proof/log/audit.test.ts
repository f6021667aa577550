import { randomBytes } from 'node:crypto';
import t from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { EMPTY_TREE, entryBundles, startAudit } from '../../../src/proof/log/audit.js';
import { encodeEntries } from '../../../src/proof/log/entries.js';
import { HASH_BYTES, leafHash, rootOfLeafHashes, verifyConsistency } from '../../../src/proof/log/merkle.js';
import { findPrefix, tilesForPrefix } from '../../../src/proof/log/prefix.js';
import { extendTiles, readFrom } from '../../../src/proof/log/tile.js';
import { leafRecord, parseLeafRecord } from '../../../src/proof/statement/leaf.js';
import { FUZZ } from '../../support/fuzz.js';

const ORIGIN = 'log.example';
const publicKey = utf8('key');
const RECORDS = Array.from({ length: 1_100 }, () =>
  leafRecord({ digest: bytes(32), signature: bytes(70), publicKey }),
);
const HASHES = RECORDS.map(leafHash);
const SIZES = [1, 2, 3, 255, 256, 257, 511, 512, 513, 600, 1_023, 1_024, 1_025, 1_100];
const tree = extendTiles({ size: 0, tiles: [] }, HASHES);

function bytes(count: number): Uint8Array {
  return new Uint8Array(randomBytes(count));
}

function rootAt(size: number): Uint8Array {
  return rootOfLeafHashes(HASHES.slice(0, size));
}

/** The bundles of entries of an audit between two sizes. */
function* bundles(start: number, end: number) {
  for (const address of entryBundles(start, end)) {
    const first = address.index * 256;
    yield { address, bundle: encodeEntries(RECORDS.slice(first, first + address.width)) };
  }
}

t.test('an audit that stops and continues anywhere derives every root and tile', async (t) => {
  const checkpoints = SIZES.map((size) => ({
    origin: ORIGIN,
    size,
    rootHash: rootAt(size),
    from: `${size}`,
  }));
  let at = EMPTY_TREE;
  for (const end of SIZES) {
    const audit = startAudit({ start: at, checkpoints, isTrustedKey: () => true });
    for (const { address, bundle } of bundles(at.size, end)) {
      const { leaves, completed } = audit.add(bundle, address);
      const served = readFrom(tree.tiles)(0, address.index);
      t.ok(Buffer.from(served!.subarray(0, address.width * HASH_BYTES)).equals(leaves), `${end}`);
      for (const { level, index, hashes } of completed)
        t.ok(Buffer.from(hashes).equals(readFrom(tree.tiles)(level, index) ?? utf8('')));
    }
    t.strictSame(audit.problems, []);
    t.strictSame(audit.contradicted, []);
    t.ok(
      audit.confirmed.some(({ size }) => size === end),
      `${end} is confirmed`,
    );
    at = audit.tree;
  }
});

t.test('changed entries before the start are detected', async (t) => {
  const first = startAudit({ start: EMPTY_TREE, checkpoints: [], isTrustedKey: () => true });
  for (const { address, bundle } of bundles(0, 300)) first.add(bundle, address);
  const next = startAudit({ start: first.tree, checkpoints: [], isTrustedKey: () => true });
  const changed = RECORDS.with(270, RECORDS[0]!).slice(256, 512);
  next.add(encodeEntries(changed), { level: 'entries', index: 1, width: 256 });
  t.strictSame(next.problems, ['the 44 entries before entry 300 are not those that were read before']);
});

t.test('the tiles of a tree prove the root of each of its beginnings', async (t) => {
  for (const newSize of SIZES) {
    const { root, tiles } = extendTiles({ size: 0, tiles: [] }, HASHES.slice(0, newSize));
    for (const size of [0, ...SIZES].filter((one) => one <= newSize)) {
      const refs = tilesForPrefix(size, newSize);
      const read = readFrom(refs.map((ref) => ({ ...ref, hashes: readFrom(tiles)(ref.level, ref.index)! })));
      const prefix = findPrefix(size, { size: newSize, rootHash: root }, read);
      t.strictSame(prefix?.rootHash, rootAt(size), `${size} of ${newSize}`);
      const claim = { oldSize: size, oldRoot: rootAt(size), newSize, newRoot: root };
      t.ok(verifyConsistency(claim, prefix?.proof ?? []));
    }
  }
});

t.test('tiles with a flipped bit prove nothing', async (t) => {
  for (let i = 0; i < FUZZ.cases; i++) {
    const size = 1 + ((FUZZ.seed + i * 7_919) % 1_099);
    const refs = tilesForPrefix(size, 1_100);
    const whole = { size: 1_100, rootHash: tree.root };
    const flipped = i % refs.length;
    const used = refs.map((ref, at) => {
      const hashes = new Uint8Array(readFrom(tree.tiles)(ref.level, ref.index)!);
      // All of the tile, for not every hash of it is part of the proof.
      return { ...ref, hashes: at === flipped ? hashes.map((byte) => byte ^ 1) : hashes };
    });
    t.equal(findPrefix(size, whole, readFrom(used)), undefined, `${size}`);
  }
});

t.test('only the canonical form of a leaf record is accepted', async (t) => {
  const [record] = RECORDS;
  const text = Buffer.from(record!).toString();
  t.strictSame(parseLeafRecord(record!).publicKey, publicKey);
  const others = [
    '',
    ` ${text}`,
    `${text}\n`,
    text.replace('0.0.2', '0x0.2'),
    text.replace('"kind"', '"Kind"'),
    text.replace('{"data"', '{"x":1,"data"'),
    text.replace(/"digest":"./, '"digest":"='),
    text.replace(/="}\}\}\}/, '"}}}'),
    text.replace(/"rawBytes":"[^"]*"/, '"rawBytes":"a2V5="'),
    text.replace(/"content":"./, '"content":"\\\\u0041'),
  ];
  for (const other of others.filter((one) => one !== text))
    t.throws(() => parseLeafRecord(utf8(other)), { name: 'FormatError' }, other.slice(0, 60));
  t.throws(() => parseLeafRecord(Uint8Array.of(0xff)), { name: 'FormatError' });
});
