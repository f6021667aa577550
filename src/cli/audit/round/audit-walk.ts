/** Reads the entries of a log, and compares its tiles with those that follow from the entries. */
import { FormatError } from '../../../proof/bytes/format-error.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import {
  type Audit,
  type AuditedTree,
  entryBundles,
  type ShownCheckpoint,
} from '../../../proof/log/audit.js';
import { HASH_BYTES } from '../../../proof/log/merkle.js';
import type { TileRef } from '../../../proof/log/tile.js';
import { type TileAddress, tilePath } from '../../../proof/log/tile-path.js';
import { fetchEntries, fetchTile, type LogSource, type Net } from '../source/log-source.js';
import { mapConcurrent } from '../source/map-concurrent.js';

/** The source of entries, and the callback of progress. */
type WalkDeps = {
  readonly net: Net;
  readonly source: LogSource;
  /** Called with the number of entries of each bundle, and the tree up to its end if nothing is wrong so far. */
  readonly onRead: (entries: number, tree: AuditedTree | undefined) => Promise<void> | void;
};

/** Bundles of entries in flight, each with its tile. Bounds the memory as well: a bundle has at most 16 MiB. */
const CONCURRENCY = 8;

/**
 * Reads the entries up to `end`. Throws SourceError, or FormatError if entries or tiles are missing, malformed, or
 * contradict each other.
 */
export async function walkEntries<C extends ShownCheckpoint>(
  deps: WalkDeps,
  audit: Audit<C>,
  end: number,
): Promise<void> {
  const read = async (address: TileAddress) => {
    const pair = [
      fetchEntries(deps.net, deps.source, address),
      fetchTile(deps.net, deps.source, leafTile(address)),
    ];
    return { address, found: await Promise.all(pair).catch((error: Error) => error) };
  };
  for await (const { address, found } of mapConcurrent(
    entryBundles(audit.tree.size, end),
    CONCURRENCY,
    read,
  )) {
    if (found instanceof Error) throw found;
    const [entries, tile] = found;
    const before = audit.tree.size;
    const { leaves, completed } = addBundle(audit, entries!, address);
    if (!equalBytes(leaves, tile!)) throw contradicts(leafTile(address));
    for (const { level, index, hashes } of completed) await compareTile(deps, { level, index, hashes });
    await deps.onRead(audit.tree.size - before, isRight(audit) ? audit.tree : undefined);
  }
  const partial = audit.tree.tiles.filter(({ level }) => level > 0);
  for (const tile of partial) await compareTile(deps, tile);
}

function leafTile({ index, width }: TileAddress): TileRef {
  return { level: 0, index, width };
}

function isRight<C>({ problems, contradicted }: Audit<C>): boolean {
  return problems.length + contradicted.length === 0;
}

function addBundle<C>(audit: Audit<C>, entries: Uint8Array, address: TileAddress) {
  try {
    return audit.add(entries, address);
  } catch (error) {
    if (error instanceof FormatError) throw new FormatError(`${tilePath(address)}: ${error.message}`);
    throw error;
  }
}

async function compareTile(
  { net, source }: WalkDeps,
  { level, index, hashes }: { level: number; index: number; hashes: Uint8Array },
): Promise<void> {
  const ref = { level, index, width: hashes.length / HASH_BYTES };
  if (!equalBytes(await fetchTile(net, source, ref), hashes)) throw contradicts(ref);
}

function contradicts(ref: TileRef): FormatError {
  return new FormatError(`${tilePath(ref)} is not the tile that follows from the entries`);
}
