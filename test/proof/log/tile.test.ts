import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import {
  emptyRoot,
  HASH_BYTES,
  leafHash,
  rootOfLeafHashes,
  verifyConsistency,
  verifyInclusion,
} from '../../../src/proof/log/merkle.js';
import {
  extendTiles,
  HALF_HEIGHT,
  type ReadTile,
  readFrom,
  rightEdgeTiles,
  rootFromTiles,
  type Tile,
  tileRow,
  tileWidth,
} from '../../../src/proof/log/tile.js';
import {
  consistencyProof,
  inclusionProof,
  tilesForConsistency,
  tilesForInclusion,
} from '../../../src/proof/log/tile-proof.js';

const LEAVES = 66_200;
const leaves = Array.from({ length: LEAVES }, (_, i) => leafHash(utf8(`leaf ${i}`)));
const roots = new Map<number, Uint8Array>();

function rootAt(size: number): Uint8Array {
  const known = roots.get(size) ?? rootOfLeafHashes(leaves.slice(0, size));
  roots.set(size, known);
  return known;
}

/** A stored log: one row per (level, index), as the service keeps it. */
function emptyStore() {
  const rows = new Map<string, Uint8Array>();
  const read: ReadTile = (level, index) => rows.get(`${level}/${index}`);
  const write = (tiles: readonly Tile[]) => {
    for (const tile of tiles) rows.set(`${tile.level}/${tile.index}`, tile.hashes);
  };
  const edge = (size: number): Tile[] =>
    rightEdgeTiles(size).map(({ level, index }) => ({ level, index, hashes: read(level, index)! }));
  return { rows, read, write, edge };
}

function storeOf(size: number) {
  const store = emptyStore();
  store.write(extendTiles({ size: 0, tiles: [] }, leaves.slice(0, size)).tiles);
  return store;
}

/** Each tile's hash: comparing megabytes of them byte by byte takes seconds. */
function digest(rows: ReadonlyMap<string, Uint8Array>): Record<string, string> {
  return Object.fromEntries([...rows].sort().map(([place, hashes]) => [place, toHex(sha256(hashes))]));
}

/** Numbers that look random and are the same in every run. */
function sequence(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

const whole = storeOf(LEAVES);

t.test('a log extended in any portions has the root of all its leaves', async (t) => {
  for (const [seed, largest] of [
    [1, 3],
    [2, 40],
    [3, 300],
    [4, 9_000],
  ] as const) {
    const below = sequence(seed);
    const store = emptyStore();
    const end = Math.min(LEAVES, largest * 60);
    for (let size = 0; size < end; ) {
      const portion = leaves.slice(size, Math.min(end, size + 1 + below(largest)));
      const extension = extendTiles({ size, tiles: store.edge(size) }, portion);
      store.write(extension.tiles);
      size = extension.size;
      if (below(8) === 0 || size === end) t.strictSame(extension.root, rootAt(size), `size ${size}`);
    }
    const expected = storeOf(end);
    t.strictSame(digest(store.rows), digest(expected.rows), 'the same tiles');
  }
});

t.test('an extension returns only tiles that are new or have grown', async (t) => {
  const before = storeOf(600);
  const copies = before.edge(600).map((tile) => ({ ...tile, hashes: tile.hashes.slice() }));
  const tiles = before.edge(600);
  const extension = extendTiles({ size: 600, tiles }, leaves.slice(600, 700));
  t.strictSame(
    extension.tiles.map(({ level, index, hashes }) => [level, index, hashes.length / HASH_BYTES]),
    [[0, 2, 188]],
  );
  t.strictSame(tiles, copies);
  t.strictSame(extendTiles({ size: 600, tiles }, []), { size: 600, root: rootAt(600), tiles: [] });
  t.strictSame(extendTiles({ size: 0, tiles: [] }, []), { size: 0, root: emptyRoot(), tiles: [] });
});

t.test('an extension rejects a right edge that is missing, too short or of odd hashes', async (t) => {
  const tiles = storeOf(600).edge(600);
  t.throws(() => extendTiles({ size: 600, tiles: tiles.slice(1) }, leaves.slice(0, 1)), FormatError);
  t.throws(() => extendTiles({ size: 600, tiles: tiles.slice(0, 1) }, leaves.slice(0, 1)), FormatError);
  const short = tiles.map((tile) => ({ ...tile, hashes: tile.hashes.slice(HASH_BYTES) }));
  t.throws(() => extendTiles({ size: 600, tiles: short }, leaves.slice(0, 1)), FormatError);
  t.throws(() => extendTiles({ size: 0, tiles: [] }, [new Uint8Array(31)]), FormatError);
});

t.test('a tile wider than the requested size serves that size', async (t) => {
  for (const size of [1, 2, 255, 256, 257, 300, 511, 512, 513, 65_535, 65_536, 65_537, 66_000]) {
    t.strictSame(rootFromTiles(size, whole.read), rootAt(size), `root of ${size}`);
    const extension = extendTiles({ size, tiles: whole.edge(size) }, leaves.slice(size, size + 100));
    t.strictSame(extension.root, rootAt(size + 100), `${size} and 100 more`);
  }
});

t.test('proofs read from tiles verify at every size to 70 and around the edges of tiles', async (t) => {
  const small = Array.from({ length: 70 }, (_, i) => i);
  for (const size of [...small.map((i) => i + 1), 255, 256, 257, 512, 513, 65_535, 65_536, 65_537, 66_000]) {
    const root = rootAt(size);
    const indexes = size <= 70 ? small.slice(0, size) : [0, 1, 255, 256, size - 2, size - 1];
    const refused = indexes.filter((index) => {
      const claim = { leafHash: leaves[index]!, index, size, root };
      return index < size && !verifyInclusion(claim, inclusionProof(index, size, whole.read));
    });
    t.strictSame(refused, [], `inclusion at size ${size}`);
    const broken = [0, ...indexes.map((i) => i + 1)].filter((oldSize) => {
      const claim = { oldSize, oldRoot: rootAt(oldSize), newSize: size, newRoot: root };
      return oldSize <= size && !verifyConsistency(claim, consistencyProof(oldSize, size, whole.read));
    });
    t.strictSame(broken, [], `consistency up to size ${size}`);
  }
});

t.test('a proof reads no tile but those that were named for it, and few of them', async (t) => {
  const below = sequence(7);
  const same: boolean[] = [];
  for (let round = 0; round < 200; round++) {
    const size = 1 + below(LEAVES);
    const index = below(size);
    const oldSize = below(size + 1);
    const cases: [{ level: number; index: number; width: number }[], (read: ReadTile) => unknown][] = [
      [tilesForInclusion(index, size), (read) => inclusionProof(index, size, read)],
      [tilesForConsistency(oldSize, size), (read) => consistencyProof(oldSize, size, read)],
    ];
    for (const [refs, compute] of cases) {
      // Each tile as an HTTP client gets it: cut to the width it has at this size.
      const tiles = refs.map(({ level, index: at, width }) => ({
        level,
        index: at,
        hashes: whole.read(level, at)!.slice(0, width * HASH_BYTES),
      }));
      same.push(isDeepStrictEqual(compute(readFrom(tiles)), compute(whole.read)));
      same.push(refs.length <= 7);
      same.push(refs.every((ref) => ref.width === tileWidth(ref.level, ref.index, size)));
    }
  }
  t.ok(same.every(Boolean));
});

t.test('tiles of half the height give the same proofs', async (t) => {
  const below = sequence(11);
  const half: ReadTile = (level, index) => {
    const width = 2 ** HALF_HEIGHT;
    if (level % 2 === 1) return tileRow(whole.read((level - 1) / 2, index) ?? new Uint8Array(), HALF_HEIGHT);
    const first = (index % width) * width;
    const tile = whole.read(level / 2, Math.floor(index / width));
    return tile?.slice(first * HASH_BYTES, (first + width) * HASH_BYTES);
  };
  const same: boolean[] = [];
  for (let round = 0; round < 200; round++) {
    const size = 1 + below(LEAVES);
    const index = below(size);
    const refs = tilesForInclusion(index, size, HALF_HEIGHT);
    const tiles = refs.map((ref) => ({
      ...ref,
      hashes: half(ref.level, ref.index)!.slice(0, ref.width * HASH_BYTES),
    }));
    const proof = inclusionProof(index, size, readFrom(tiles), HALF_HEIGHT);
    same.push(isDeepStrictEqual(proof, inclusionProof(index, size, whole.read)));
  }
  t.ok(same.every(Boolean));
});

t.test('impossible proofs are rejected', async (t) => {
  for (const [index, size] of [
    [0, 0],
    [5, 5],
    [-1, 5],
    [0.5, 5],
    [0, 2 ** 53],
    [Number.NaN, 5],
  ] as const) {
    t.throws(() => inclusionProof(index, size, whole.read), FormatError, `leaf ${index} of ${size}`);
    t.throws(() => tilesForInclusion(index, size), FormatError);
  }
  for (const [oldSize, newSize] of [
    [6, 5],
    [-1, 5],
    [0.5, 5],
    [1, 2 ** 53],
  ] as const) {
    t.throws(() => consistencyProof(oldSize, newSize, whole.read), FormatError, `${oldSize} to ${newSize}`);
  }
  t.throws(() => inclusionProof(0, LEAVES + 1, whole.read), FormatError, 'a size beyond the stored log');
});

t.test('the tiles of a log far beyond 32 bits are named exactly', async (t) => {
  const size = 2 ** 52 + 3;
  t.strictSame(rightEdgeTiles(size), [
    { level: 0, index: 2 ** 44, width: 3 },
    { level: 6, index: 0, width: 16 },
  ]);
  const refs = tilesForInclusion(2 ** 52, size);
  t.strictSame(refs, [
    { level: 0, index: 2 ** 44, width: 3 },
    { level: 6, index: 0, width: 16 },
  ]);
});

t.test('tiles read from a database as Buffers are read, never written to', async (t) => {
  const stored = storeOf(700)
    .edge(700)
    .map((tile) => ({ ...tile, hashes: Buffer.from(tile.hashes) }));
  const copies = stored.map((tile) => Buffer.from(tile.hashes));
  t.strictSame(extendTiles({ size: 700, tiles: stored }, leaves.slice(700, 1300)).root, rootAt(1300));
  t.strictSame(rootFromTiles(700, readFrom(stored)), rootAt(700));
  t.strictSame(
    stored.map((tile) => tile.hashes),
    copies,
  );
});
