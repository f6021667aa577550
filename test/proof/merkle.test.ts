import t from 'tap';
import { fromHex, toHex, utf8 } from '../../src/proof/encoding.js';
import {
  emptyRoot,
  leafHash,
  nodeHash,
  rootOfLeafHashes,
  verifyConsistency,
  verifyInclusion,
} from '../../src/proof/merkle.js';

/** MTH of RFC 6962, section 2.1, word for word. */
function recursiveRoot(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return emptyRoot();
  if (leaves.length === 1) return leaves[0]!;
  const k = split(leaves.length);
  return nodeHash(recursiveRoot(leaves.slice(0, k)), recursiveRoot(leaves.slice(k)));
}

/** PATH of RFC 6962, section 2.1.1. */
function recursivePath(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  const k = split(leaves.length);
  return m < k
    ? [...recursivePath(m, leaves.slice(0, k)), recursiveRoot(leaves.slice(k))]
    : [...recursivePath(m - k, leaves.slice(k)), recursiveRoot(leaves.slice(0, k))];
}

/** SUBPROOF of RFC 6962, section 2.1.2. */
function recursiveSubproof(m: number, leaves: readonly Uint8Array[], whole: boolean): Uint8Array[] {
  if (m === leaves.length) return whole ? [] : [recursiveRoot(leaves)];
  const k = split(leaves.length);
  return m <= k
    ? [...recursiveSubproof(m, leaves.slice(0, k), whole), recursiveRoot(leaves.slice(k))]
    : [...recursiveSubproof(m - k, leaves.slice(k), false), recursiveRoot(leaves.slice(0, k))];
}

function split(n: number): number {
  let k = 1;
  while (k * 2 < n) k *= 2;
  return k;
}

function flipped(hash: Uint8Array, bit = 0): Uint8Array {
  const copy = hash.slice();
  copy[bit >> 3]! ^= 1 << (bit & 7);
  return copy;
}

const leaves = Array.from({ length: 71 }, (_, i) => leafHash(utf8(`leaf ${i}`)));

// The vectors of the certificate-transparency reference implementation (merkle_tree_test).
const VECTOR_LEAVES = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
];
const VECTOR_ROOTS = [
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];
const VECTOR_INCLUSION: [index: number, size: number, proof: string[]][] = [
  [0, 1, []],
  [
    0,
    8,
    [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ],
  ],
  [
    5,
    8,
    [
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  ],
  [2, 3, ['fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125']],
  [
    1,
    5,
    [
      '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    ],
  ],
];
const VECTOR_CONSISTENCY: [oldSize: number, newSize: number, proof: string[]][] = [
  [1, 1, []],
  [
    1,
    8,
    [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ],
  ],
  [
    6,
    8,
    [
      '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
      'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
      'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    ],
  ],
  [
    2,
    5,
    [
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    ],
  ],
];

t.test('the tree hashes as the reference vectors say', async (t) => {
  t.equal(toHex(emptyRoot()), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  const hashes = VECTOR_LEAVES.map((leaf) => leafHash(fromHex(leaf)));
  for (const [i, root] of VECTOR_ROOTS.entries()) {
    t.equal(toHex(rootOfLeafHashes(hashes.slice(0, i + 1))), root, `size ${i + 1}`);
  }
  for (const [index, size, proof] of VECTOR_INCLUSION) {
    t.strictSame(recursivePath(index, hashes.slice(0, size)).map(toHex), proof);
    const claim = { leafHash: hashes[index]!, index, size, root: fromHex(VECTOR_ROOTS[size - 1]!) };
    t.ok(
      verifyInclusion(
        claim,
        proof.map((hash) => fromHex(hash)),
      ),
      `leaf ${index} of ${size}`,
    );
  }
  for (const [oldSize, newSize, proof] of VECTOR_CONSISTENCY) {
    t.strictSame(recursiveSubproof(oldSize, hashes.slice(0, newSize), true).map(toHex), proof);
    const [oldRoot, newRoot] = [fromHex(VECTOR_ROOTS[oldSize - 1]!), fromHex(VECTOR_ROOTS[newSize - 1]!)];
    t.ok(
      verifyConsistency(
        { oldSize, oldRoot, newSize, newRoot },
        proof.map((hash) => fromHex(hash)),
      ),
    );
  }
});

t.test('the root of every size to 70 is that of the recursive definition', async (t) => {
  for (let size = 0; size <= 70; size++) {
    t.strictSame(rootOfLeafHashes(leaves.slice(0, size)), recursiveRoot(leaves.slice(0, size)));
  }
});

t.test('every inclusion proof to size 70 verifies, and none that is changed does', async (t) => {
  let wrongOnes = 0;
  for (let size = 1; size <= 70; size++) {
    const root = recursiveRoot(leaves.slice(0, size));
    for (let index = 0; index < size; index++) {
      const proof = recursivePath(index, leaves.slice(0, size));
      const claim = { leafHash: leaves[index]!, index, size, root };
      if (!verifyInclusion(claim, proof)) t.fail(`leaf ${index} of ${size}`);
      const changed: boolean[] = [
        verifyInclusion({ ...claim, leafHash: flipped(claim.leafHash) }, proof),
        verifyInclusion({ ...claim, root: flipped(root) }, proof),
        verifyInclusion({ ...claim, index: (index + 1) % size }, proof) && size > 1,
        verifyInclusion({ ...claim, index: size }, proof),
        verifyInclusion(claim, [...proof, emptyRoot()]),
        verifyInclusion(claim, [emptyRoot(), ...proof]),
        proof.length > 0 && verifyInclusion(claim, proof.slice(1)),
        proof.length > 0 && verifyInclusion(claim, proof.slice(0, -1)),
        ...proof.map((hash, i) => verifyInclusion(claim, proof.with(i, flipped(hash)))),
        ...proof.map((hash, i) => verifyInclusion(claim, proof.with(i, hash.slice(0, 31)))),
      ];
      wrongOnes += changed.filter(Boolean).length;
    }
  }
  t.equal(wrongOnes, 0);
});

t.test('every consistency proof to size 70 verifies, and none that is changed does', async (t) => {
  let wrongOnes = 0;
  for (let newSize = 1; newSize <= 70; newSize++) {
    const newRoot = recursiveRoot(leaves.slice(0, newSize));
    for (let oldSize = 1; oldSize <= newSize; oldSize++) {
      const oldRoot = recursiveRoot(leaves.slice(0, oldSize));
      const proof = recursiveSubproof(oldSize, leaves.slice(0, newSize), true);
      const claim = { oldSize, oldRoot, newSize, newRoot };
      if (!verifyConsistency(claim, proof)) t.fail(`${oldSize} to ${newSize}`);
      const changed: boolean[] = [
        verifyConsistency({ ...claim, oldRoot: flipped(oldRoot) }, proof),
        verifyConsistency({ ...claim, newRoot: flipped(newRoot) }, proof),
        verifyConsistency({ ...claim, oldSize: newSize + 1 }, proof),
        verifyConsistency(claim, [...proof, emptyRoot()]),
        proof.length > 0 && verifyConsistency(claim, proof.slice(0, -1)),
        proof.length > 0 && verifyConsistency(claim, proof.slice(1)),
        ...proof.map((hash, i) => verifyConsistency(claim, proof.with(i, flipped(hash)))),
      ];
      wrongOnes += changed.filter(Boolean).length;
    }
  }
  t.equal(wrongOnes, 0);
});

t.test('an empty old tree is consistent with any tree, by the empty proof only', async (t) => {
  const claim = { oldSize: 0, oldRoot: emptyRoot(), newSize: 5, newRoot: leaves[0]! };
  t.ok(verifyConsistency(claim, []));
  t.notOk(verifyConsistency(claim, [leaves[1]!]));
  t.notOk(verifyConsistency({ ...claim, oldRoot: leaves[2]! }, []));
});

t.test('a proof at an index beyond 32 bits is followed exactly', async (t) => {
  // An independent fold with BigInt: the proof's lower part follows the index's bits, the rest lies to the left.
  const rootByBigInt = (index: bigint, size: bigint, leaf: Uint8Array, proof: Uint8Array[]): Uint8Array => {
    const inner = index === size - 1n ? 0 : (index ^ (size - 1n)).toString(2).length;
    return proof.reduce((hash, sibling, i) => {
      const right = i >= inner || ((index >> BigInt(i)) & 1n) === 1n;
      return right ? nodeHash(sibling, hash) : nodeHash(hash, sibling);
    }, leaf);
  };
  const cases: [bigint, bigint][] = [
    [2n ** 32n, 2n ** 33n],
    [2n ** 31n - 1n, 2n ** 32n + 5n],
    [2n ** 40n + 12345n, 2n ** 41n + 99n],
    [2n ** 53n - 2n, 2n ** 53n - 1n],
    [5n, 2n ** 53n - 1n],
  ];
  for (const [index, size] of cases) {
    const inner = index === size - 1n ? 0 : (index ^ (size - 1n)).toString(2).length;
    const border = (index >> BigInt(inner)).toString(2).split('1').length - 1;
    const proof = Array.from({ length: inner + border }, (_, i) => leafHash(utf8(`sibling ${i}`)));
    const root = rootByBigInt(index, size, leaves[0]!, proof);
    const claim = { leafHash: leaves[0]!, index: Number(index), size: Number(size), root };
    t.ok(verifyInclusion(claim, proof), `leaf ${index} of ${size}`);
    t.notOk(verifyInclusion({ ...claim, index: Number(index) - 1 }, proof));
    t.notOk(verifyInclusion(claim, proof.slice(1)));
  }
});

t.test('sizes and indexes that are no such thing are refused, not computed with', async (t) => {
  const root = leaves[0]!;
  for (const bad of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    t.notOk(verifyInclusion({ leafHash: root, index: bad, size: 1, root }, []), `index ${bad}`);
    t.notOk(verifyInclusion({ leafHash: root, index: 0, size: bad, root }, []), `size ${bad}`);
    t.notOk(verifyConsistency({ oldSize: bad, oldRoot: root, newSize: 1, newRoot: root }, []), `old ${bad}`);
    t.notOk(verifyConsistency({ oldSize: 1, oldRoot: root, newSize: bad, newRoot: root }, []), `new ${bad}`);
  }
  const endless = Array.from({ length: 100_000 }, () => root);
  t.notOk(verifyInclusion({ leafHash: root, index: 0, size: 2 ** 53 - 1, root }, endless));
});
