/**
 * The Merkle tree of RFC 6962 (unchanged in RFC 9162, section 2.1): how a leaf and a node are hashed, and the two
 * proofs that make a log worth trusting. Indexes and sizes are numbers below 2^53, so halving is a division: bit
 * operations would cut them to 32 bits.
 */
import { equalBytes, sha256 } from '../bytes/primitives.js';

/** Length of every hash in the tree, in bytes. */
export const HASH_BYTES = 32;

/** Root of the tree with no leaves: SHA-256 of nothing. */
export function emptyRoot(): Uint8Array {
  return sha256(new Uint8Array(0));
}

/** Hash of a leaf record: SHA-256(0x00 ‖ record). The prefix separates leaves from nodes. */
export function leafHash(record: Uint8Array): Uint8Array {
  const input = new Uint8Array(1 + record.length);
  input.set(record, 1);
  return sha256(input);
}

/** Hash of a node over its two children: SHA-256(0x01 ‖ left ‖ right). */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  const input = new Uint8Array(1 + 2 * HASH_BYTES);
  input[0] = 0x01;
  input.set(left, 1);
  input.set(right, 1 + HASH_BYTES);
  return sha256(input);
}

/** A tree that grows leaf by leaf: its size and the roots of the full subtrees that make it up, largest (leftmost) first. */
export interface Frontier {
  size: number;
  readonly subtrees: Uint8Array[];
}

/** Is called with each node that is computed, children before parents. A hash is the same object wherever it is passed. */
export type OnNode = (left: Uint8Array, right: Uint8Array, parent: Uint8Array) => void;

/** Appends a leaf: it merges with every subtree of its own size. */
export function appendLeaf(frontier: Frontier, leafHash: Uint8Array, onNode?: OnNode): void {
  let merged = leafHash;
  for (let bits = frontier.size; bits % 2 === 1; bits = half(bits)) {
    merged = parentOf(frontier.subtrees.pop()!, merged, onNode);
  }
  frontier.subtrees.push(merged);
  frontier.size += 1;
}

/** Root over leaf hashes in order. Holds one hash per full subtree. */
export function rootOfLeafHashes(leafHashes: Iterable<Uint8Array>): Uint8Array {
  const frontier: Frontier = { size: 0, subtrees: [] };
  for (const leaf of leafHashes) appendLeaf(frontier, leaf);
  return foldRight(frontier.subtrees);
}

/** Root over the full subtrees that make up a tree, largest (leftmost) first; the empty root for none. */
export function foldRight(subtrees: readonly Uint8Array[], onNode?: OnNode): Uint8Array {
  return subtrees.length === 0
    ? emptyRoot()
    : subtrees.reduceRight((right, left) => parentOf(left, right, onNode));
}

function parentOf(left: Uint8Array, right: Uint8Array, onNode: OnNode | undefined): Uint8Array {
  const parent = nodeHash(left, right);
  onNode?.(left, right, parent);
  return parent;
}

/** The claim of an inclusion proof: this leaf hash is at `index` in the tree with `size` leaves and this root. */
interface InclusionClaim {
  readonly leafHash: Uint8Array;
  readonly index: number;
  readonly size: number;
  readonly root: Uint8Array;
}

/** Whether `proof` (sibling hashes, leaf to root) proves the claim (RFC 9162, section 2.1.3.2). Malformed input is false. */
export function verifyInclusion(claim: InclusionClaim, proof: readonly Uint8Array[]): boolean {
  const root = findRoot(claim, proof);
  return root !== undefined && equalBytes(root, claim.root);
}

/** The root that `proof` leads to from the leaf. Returns undefined if its length is not that of the leaf's path. */
export function findRoot(
  claim: Omit<InclusionClaim, 'root'>,
  proof: readonly Uint8Array[],
): Uint8Array | undefined {
  const path = findPath(claim, proof);
  return path && (path.at(-1)?.parent ?? claim.leafHash);
}

/** One step of a leaf's path to the root: a node, the sibling that the proof gives, and the parent of both. */
export type PathStep = {
  readonly node: Uint8Array;
  readonly sibling: Uint8Array;
  /** Whether the sibling is the left child. */
  readonly isSiblingLeft: boolean;
  readonly parent: Uint8Array;
};

/** The path that `proof` leads along, from the leaf up. Returns undefined if its length is not that of the leaf's path. */
export function findPath(
  { leafHash: leaf, index, size }: Omit<InclusionClaim, 'root'>,
  proof: readonly Uint8Array[],
): readonly PathStep[] | undefined {
  if (!isSize(index) || !isSize(size) || index >= size || !areHashes(proof)) return undefined;
  const steps: PathStep[] = [];
  let fn = index;
  let sn = size - 1;
  let node = leaf;
  for (const sibling of proof) {
    if (sn === 0) return undefined;
    const isSiblingLeft = fn % 2 === 1 || fn === sn;
    const parent = isSiblingLeft ? nodeHash(sibling, node) : nodeHash(node, sibling);
    steps.push({ node, sibling, isSiblingLeft, parent });
    if (isSiblingLeft) while (fn % 2 === 0 && fn !== 0) [fn, sn] = [half(fn), half(sn)];
    [fn, sn] = [half(fn), half(sn)];
    node = parent;
  }
  return sn === 0 ? steps : undefined;
}

/** The claim of a consistency proof: the tree of `oldSize` leaves is a prefix of the tree of `newSize` leaves. */
interface ConsistencyClaim {
  readonly oldSize: number;
  readonly oldRoot: Uint8Array;
  readonly newSize: number;
  readonly newRoot: Uint8Array;
}

/**
 * Whether `proof` proves the claim. RFC 9162, section 2.1.4.2; the empty proof stands for equal sizes and for
 * an empty old tree. Malformed input is false.
 */
export function verifyConsistency(claim: ConsistencyClaim, proof: readonly Uint8Array[]): boolean {
  const { oldSize, oldRoot, newSize, newRoot } = claim;
  if (!isSize(oldSize) || !isSize(newSize) || oldSize > newSize || !areHashes(proof)) return false;
  if (oldSize === newSize) return proof.length === 0 && equalBytes(oldRoot, newRoot);
  if (oldSize === 0) return proof.length === 0 && equalBytes(oldRoot, emptyRoot());
  const roots = climbConsistency(claim, proof);
  return roots !== undefined && equalBytes(roots.old, oldRoot) && equalBytes(roots.new, newRoot);
}

/** Both roots as the proof implies them, or undefined when it has the wrong length. */
function climbConsistency(
  { oldSize, oldRoot, newSize }: ConsistencyClaim,
  proof: readonly Uint8Array[],
): { old: Uint8Array; new: Uint8Array } | undefined {
  let fn = oldSize - 1;
  let sn = newSize - 1;
  while (fn % 2 === 1) [fn, sn] = [half(fn), half(sn)];
  // fn is 0 here exactly when the old size is a power of two: its root is then the first node of the path.
  const [seed, ...path] = fn === 0 ? [oldRoot, ...proof] : proof;
  if (seed === undefined) return undefined;
  let roots = { old: seed, new: seed };
  for (const hash of path) {
    if (sn === 0) return undefined;
    if (fn % 2 === 1 || fn === sn) {
      roots = {
        old: nodeHash(hash, roots.old),
        new: nodeHash(hash, roots.new),
      };
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [half(fn), half(sn)];
    } else {
      roots = { old: roots.old, new: nodeHash(roots.new, hash) };
    }
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 ? roots : undefined;
}

function half(n: number): number {
  return Math.floor(n / 2);
}

function isSize(n: number): boolean {
  return Number.isSafeInteger(n) && n >= 0;
}

/** Proofs of trees below 2^53 leaves have at most 54 hashes; longer ones are not worth reading. */
function areHashes(proof: readonly Uint8Array[]): boolean {
  return proof.length <= 64 && proof.every((hash) => hash.length === HASH_BYTES);
}
