import t from 'tap';
import { createTree, followPath, hashLeaf } from './merkle.js';

/** Leaves and roots of the test vectors that came with RFC 6962's reference implementation. */
const ENTRIES = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
];
const ROOTS = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];

const leaves = ENTRIES.map((hex) => hashLeaf(Buffer.from(hex, 'hex')));
const tree = createTree(leaves);

/** Section 2.1.1, word by word. */
function path(index: number, start: number, end: number): Buffer[] {
  if (end - start === 1) return [];
  let left = 1;
  while (left * 2 < end - start) left *= 2;
  return index < left
    ? [...path(index, start, start + left), tree.root(start + left, end)]
    : [...path(index - left, start + left, end), tree.root(start, start + left)];
}

t.test("the judge's tree has the roots of RFC 6962", async (t) => {
  t.same(
    ROOTS.map((_, size) => tree.root(0, size).toString('hex')),
    ROOTS,
  );
  t.throws(() => tree.root(0, 9), /there are no leaves/);
});

t.test('a path leads to the root from its leaf and from no other place, and not when cut', async (t) => {
  for (let size = 1; size <= leaves.length; size++) {
    for (let index = 0; index < size; index++) {
      const proof = path(index, 0, size);
      const root = tree.root(0, size);
      t.ok(followPath(leaves[index]!, index, size, proof)?.equals(root), `${index} of ${size}`);
      t.notOk(followPath(leaves[index]!, (index + 1) % (size + 1), size, proof)?.equals(root));
      t.notOk(followPath(leaves[index]!, index, size, [...proof, root])?.equals(root));
      if (size > 1) t.notOk(followPath(leaves[index]!, index, size, proof.slice(1))?.equals(root));
    }
  }
});
