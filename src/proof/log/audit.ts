/**
 * The audit of a log: every tile and every root is derived again from the entries. Because the entries are appended to
 * one tree, each root that comes out right is that of a prefix of all later ones: no checkpoint rewrote an earlier one.
 */

import { concatBytes, toBase64 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { parseLeafRecord } from '../statement/leaf.js';
import type { Checkpoint } from './checkpoint.js';
import { decodeEntries } from './entries.js';
import { HASH_BYTES, leafHash } from './merkle.js';
import { extendTiles, readFrom, rightEdgeTiles, rootFromTiles, type Tile } from './tile.js';
import { TILE_WIDTH, type TileAddress } from './tile-path.js';

/** A checkpoint, and where it was found. */
export type ShownCheckpoint = Checkpoint & { readonly from: string };

/** A tree with the tiles at its right edge, which is all that extending it needs. */
export type AuditedTree = { readonly size: number; readonly tiles: readonly Tile[] };

/** A leaf that must be in the log, its subject, and a problem of the leaf itself. */
export type ExpectedLeaf = { readonly hash: Uint8Array; readonly what: string; readonly problem?: string };

/** Inputs of an audit's checks. */
type AuditOptions<C> = {
  /** Where an earlier audit ended. */
  readonly start: AuditedTree;
  /** Checkpoints to compare, in any order; those smaller than the start are ignored. */
  readonly checkpoints: readonly C[];
  /**
   * Whether statements may be signed by this key (SPKI, DER). The signature itself is not checked: the log has only
   * the digest of the signed bytes, and neither Node nor Web Crypto verifies over a digest. Verifying a bundle does.
   */
  readonly isTrustedKey: (spki: Uint8Array) => boolean;
  /** Leaves of known statements, by log index. Those that are found are removed. */
  readonly expected?: Map<number, ExpectedLeaf>;
};

/** The tiles that follow from a bundle of entries: the one of its leaf hashes, and the full ones above that it completed. */
type DerivedTiles = { readonly leaves: Uint8Array; readonly completed: readonly Tile[] };

/** An audit in progress. */
export type Audit<C> = {
  /** The tree of the entries added so far. */
  readonly tree: AuditedTree;
  /** Problems of the entries so far, at most a hundred. */
  readonly problems: readonly string[];
  /** The checkpoints whose root is not the one derived from the entries. */
  readonly contradicted: readonly { readonly checkpoint: C; readonly derived: Uint8Array }[];
  /** The checkpoints whose root matched. */
  readonly confirmed: readonly C[];
  /** Adds the next bundle of entries. Throws FormatError if it is malformed or not the next one. */
  add(bundle: Uint8Array, address: TileAddress): DerivedTiles;
};

const MAX_PROBLEMS = 100;

/** The tree without entries. */
export const EMPTY_TREE: AuditedTree = { size: 0, tiles: [] };

/** The bundles of entries that an audit from `start` to `end` reads, in order. */
export function* entryBundles(start: number, end: number): Generator<TileAddress> {
  for (let index = Math.floor(start / TILE_WIDTH); index * TILE_WIDTH < end; index++) {
    yield { level: 'entries', index, width: Math.min(TILE_WIDTH, end - index * TILE_WIDTH) };
  }
}

/** Starts an audit. */
export function startAudit<C extends ShownCheckpoint>(options: AuditOptions<C>): Audit<C> {
  const { start, checkpoints } = options;
  const ahead = checkpoints.filter(({ size }) => size >= start.size).sort((a, b) => a.size - b.size);
  const problems: string[] = [];
  const report = (problem: string) => void (problems.length < MAX_PROBLEMS && problems.push(problem));
  const contradicted: { checkpoint: C; derived: Uint8Array }[] = [];
  const confirmed: C[] = [];
  let tree = start;
  let next = 0;
  const compare = (root: () => Uint8Array) => {
    for (; ahead[next]?.size === tree.size; next++) {
      const checkpoint = ahead[next]!;
      const derived = root();
      if (equalBytes(derived, checkpoint.rootHash)) confirmed.push(checkpoint);
      else contradicted.push({ checkpoint, derived });
    }
  };
  /** Extends the tree, with a stop at the size of each checkpoint. */
  const extend = (hashes: readonly Uint8Array[]): Tile[] => {
    const completed: Tile[] = [];
    for (let at = 0; at < hashes.length; ) {
      const count = Math.min(hashes.length - at, (ahead[next]?.size ?? Number.POSITIVE_INFINITY) - tree.size);
      const grown = extendTiles(tree, hashes.slice(at, at + count));
      completed.push(...grown.tiles.filter(({ level, hashes }) => level > 0 && isFull(hashes)));
      tree = { size: grown.size, tiles: rightEdge(grown.size, [...tree.tiles, ...grown.tiles]) };
      compare(() => grown.root);
      at += count;
    }
    return completed;
  };
  compare(() => rootFromTiles(start.size, readFrom(start.tiles)));
  return {
    get tree() {
      return tree;
    },
    problems,
    contradicted,
    confirmed,
    add: (bundle, { index, width }) => {
      const records = decodeEntries(bundle);
      if (records.length !== width) throw new FormatError(`holds ${records.length} entries, not ${width}`);
      const known = tree.size - index * TILE_WIDTH;
      if (known < 0 || known > width) throw new FormatError('is not the next bundle of entries');
      const hashes = records.map(leafHash);
      const leaves = concatBytes(...hashes);
      if (!equalBytes(leaves.subarray(0, known * HASH_BYTES), leafHashesAt(tree, known)))
        report(`the ${known} entries before entry ${tree.size} are not those that were read before`);
      for (let i = known; i < width; i++) {
        const at = index * TILE_WIDTH + i;
        const problem = findEntryProblem(records[i]!, hashes[i]!, at, options);
        if (problem !== undefined) report(`entry ${at} ${problem}`);
      }
      return { leaves, completed: extend(hashes.slice(known)) };
    },
  };
}

/** Reports why a checkpoint contradicts the entries. */
export function contradiction({ size, rootHash, from }: ShownCheckpoint, derived: Uint8Array): string {
  return `the first ${size} entries have the root ${toBase64(derived)}, but ${from} says ${toBase64(rootHash)}`;
}

/** The tiles at the right edge of a tree, out of a list in which later ones replace earlier ones. */
function rightEdge(size: number, tiles: readonly Tile[]): Tile[] {
  const read = readFrom(tiles);
  return rightEdgeTiles(size).map(({ level, index, width }) => {
    const hashes = read(level, index);
    if (hashes === undefined) throw new FormatError(`tile ${level}/${index} is missing`);
    return { level, index, hashes: hashes.subarray(0, width * HASH_BYTES) };
  });
}

function leafHashesAt({ tiles }: AuditedTree, count: number): Uint8Array {
  const hashes = tiles.find(({ level }) => level === 0)?.hashes;
  return count === 0 || hashes === undefined ? new Uint8Array(0) : hashes.subarray(0, count * HASH_BYTES);
}

function isFull(hashes: Uint8Array): boolean {
  return hashes.length === TILE_WIDTH * HASH_BYTES;
}

function findEntryProblem<C>(
  record: Uint8Array,
  hash: Uint8Array,
  index: number,
  { isTrustedKey, expected }: AuditOptions<C>,
): string | undefined {
  const leaf = expected?.get(index);
  if (leaf !== undefined && !equalBytes(leaf.hash, hash)) return `is not the leaf of ${leaf.what}`;
  if (leaf?.problem !== undefined) return `is the leaf of ${leaf.what}: ${leaf.problem}`;
  expected?.delete(index);
  try {
    const { publicKey } = parseLeafRecord(record);
    return isTrustedKey(publicKey) ? undefined : 'names a key that the trust roots do not';
  } catch (error) {
    if (error instanceof FormatError) return `is no leaf record: ${error.message}`;
    throw error;
  }
}
