import t from 'tap';
import { fromHex, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import {
  emptyRoot,
  leafHash,
  nodeHash,
  rootOfLeafHashes,
  verifyConsistency,
  verifyInclusion,
} from '../../../src/proof/log/merkle.js';
import { VECTOR_CONSISTENCY, VECTOR_INCLUSION, VECTOR_LEAVES, VECTOR_ROOTS } from './rfc6962-vectors.js';

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

t.test('invalid sizes and indexes are rejected', async (t) => {
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
