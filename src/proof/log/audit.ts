/**
 * The audit of a log: every root is derived again from the entries. Because the entries are appended to one tree, each
 * root that comes out right is that of a prefix of all later ones: no checkpoint rewrote an earlier one.
 */

import { toBase64 } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { equalBytes } from '../bytes/primitives.js';
import { parseLeafRecord } from '../statement/leaf.js';
import type { Checkpoint } from './checkpoint.js';
import { decodeEntries } from './entries.js';
import { appendLeaf, type Frontier, foldRight, leafHash } from './merkle.js';
import { TILE_WIDTH, type TileAddress } from './tile-path.js';

/** A signed checkpoint, and where it was found. */
export type ShownCheckpoint = Checkpoint & { readonly from: string };

/** What an audit checks entries against. */
type AuditOptions = {
  /** The frontier of an earlier audit; not modified. */
  readonly start: Frontier;
  /** Checkpoints to compare, in any order; those smaller than the start are ignored. */
  readonly checkpoints: readonly ShownCheckpoint[];
  /**
   * Whether statements may be signed by this key (SPKI, DER). The signature itself is not checked: the log holds but the
   * digest of what is signed, and neither Node nor Web Crypto verifies over a digest. Verifying a bundle does.
   */
  readonly isTrustedKey: (spki: Uint8Array) => boolean;
};

/** An audit in progress. */
export type Audit = {
  /** The tree of the entries added so far. */
  readonly frontier: Frontier;
  /** Problems of the log so far, at most a hundred. */
  readonly problems: readonly string[];
  /** Number of checkpoints whose root matched. */
  readonly confirmed: number;
  /** Adds the next bundle of entries. Throws FormatError if it is malformed or not the next one. */
  add(bundle: Uint8Array, address: TileAddress): void;
};

const MAX_PROBLEMS = 100;

/** The bundles of entries that an audit from `start` to `end` reads, in order. */
export function* entryBundles(start: number, end: number): Generator<TileAddress> {
  for (let index = Math.floor(start / TILE_WIDTH); index * TILE_WIDTH < end; index++) {
    yield { level: 'entries', index, width: Math.min(TILE_WIDTH, end - index * TILE_WIDTH) };
  }
}

/** Starts an audit. */
export function startAudit({ start, checkpoints, isTrustedKey }: AuditOptions): Audit {
  const frontier: Frontier = { size: start.size, subtrees: [...start.subtrees] };
  const ahead = checkpoints.filter(({ size }) => size >= start.size).sort((a, b) => a.size - b.size);
  const problems: string[] = [];
  const report = (problem: string) => void (problems.length < MAX_PROBLEMS && problems.push(problem));
  let next = 0;
  let confirmed = 0;
  const compare = () => {
    for (; ahead[next]?.size === frontier.size; next++) {
      const { rootHash, from } = ahead[next]!;
      const derived = foldRight(frontier.subtrees);
      if (equalBytes(derived, rootHash)) confirmed++;
      else report(contradiction(frontier.size, derived, rootHash, from));
    }
  };
  const addEntry = (record: Uint8Array) => {
    const problem = findEntryProblem(record, isTrustedKey);
    if (problem !== undefined) report(`entry ${frontier.size} ${problem}`);
    appendLeaf(frontier, leafHash(record));
    compare();
  };
  compare();
  return {
    frontier,
    problems,
    get confirmed() {
      return confirmed;
    },
    add: (bundle, { index, width }) => {
      const records = decodeEntries(bundle);
      if (records.length !== width) throw new FormatError(`holds ${records.length} entries, not ${width}`);
      for (const record of records.slice(frontier.size - index * TILE_WIDTH)) addEntry(record);
    },
  };
}

function contradiction(size: number, derived: Uint8Array, said: Uint8Array, from: string): string {
  return `the first ${size} entries have the root ${toBase64(derived)}, but ${from} says ${toBase64(said)}`;
}

function findEntryProblem(
  record: Uint8Array,
  isTrustedKey: AuditOptions['isTrustedKey'],
): string | undefined {
  try {
    const { publicKey } = parseLeafRecord(record);
    return isTrustedKey(publicKey) ? undefined : 'names a key that the trust roots do not';
  } catch (error) {
    if (error instanceof FormatError) return `is no leaf record: ${error.message}`;
    throw error;
  }
}
