/** The Merkle tree of RFC 6962, section 2.1, written from its text. Shares nothing with the service's own. */
import { createHash } from 'node:crypto';

const LEAF = Buffer.of(0x00);
const NODE = Buffer.of(0x01);

function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** MTH of a list of one entry: its leaf hash. */
export function hashLeaf(entry: Uint8Array): Buffer {
  return sha256(LEAF, entry);
}

/** The root of any stretch of a list of leaf hashes. Roots of full subtrees are remembered. */
export type Tree = { size: number; root(start: number, end: number): Buffer };

/** MTH(D[start:end]), by the recursive definition. */
export function createTree(leaves: readonly Buffer[]): Tree {
  const remembered = new Map<string, Buffer>();
  const root = (start: number, end: number): Buffer => {
    const size = end - start;
    if (start < 0 || size < 0 || end > leaves.length)
      throw new Error(`there are no leaves ${start} to ${end}`);
    if (size === 0) return sha256();
    if (size === 1) return leaves[start]!;
    const key = `${start} ${end}`;
    const known = remembered.get(key);
    if (known !== undefined) return known;
    const left = largestPowerBelow(size);
    const value = sha256(NODE, root(start, start + left), root(start + left, end));
    if (left * 2 === size) remembered.set(key, value);
    return value;
  };
  return { size: leaves.length, root };
}

/** The largest power of two smaller than n; n is at least 2. */
function largestPowerBelow(n: number): number {
  let power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

/** The root that an audit path (section 2.1.1) leads to from a leaf; undefined when the path has another length. */
export function followPath(
  leaf: Buffer,
  index: number,
  size: number,
  path: readonly Buffer[],
): Buffer | undefined {
  if (index < 0 || index >= size) return undefined;
  if (size === 1) return path.length === 0 ? leaf : undefined;
  const sibling = path.at(-1);
  if (sibling === undefined) return undefined;
  const below = path.slice(0, -1);
  const left = largestPowerBelow(size);
  if (index < left) {
    const root = followPath(leaf, index, left, below);
    return root && sha256(NODE, root, sibling);
  }
  const root = followPath(leaf, index - left, size - left, below);
  return root && sha256(NODE, sibling, root);
}
