/** Compares checkpoints of different sizes, by the tiles that a log and its mirrors serve. */
import { FormatError } from '../../../proof/bytes/format-error.js';
import { HASH_BYTES } from '../../../proof/log/merkle.js';
import { findPrefix, type ProvenPrefix, tilesForPrefix } from '../../../proof/log/prefix.js';
import { readFrom, type Tile, type TileRef } from '../../../proof/log/tile.js';
import type { SeenCheckpoint } from '../checkpoint/seen-checkpoint.js';
import { fetchTile, type LogSource, type Net, SourceError } from '../source/log-source.js';

/** Finds the root that a checkpoint's tree has at a smaller size; undefined if no source serves the tiles for it. */
export type PrefixFinder = (size: number, tree: SeenCheckpoint) => Promise<ProvenPrefix | undefined>;

/** Of 8 KiB each. */
const MAX_CACHED_TILES = 512;

/** Creates a finder over sources in their order. It keeps tiles, so it must not be used for long. */
export function createPrefixFinder(net: Net, sources: readonly LogSource[]): PrefixFinder {
  const caches = new Map(sources.map((source) => [source, new Map<string, Uint8Array>()]));
  return async (size, tree) => {
    for (const source of sources) {
      const found = await findAt({ net, source, cache: caches.get(source)! }, size, tree).catch(
        ignoreUnserved,
      );
      if (found !== undefined) return found;
    }
    return undefined;
  };
}

type At = { readonly net: Net; readonly source: LogSource; readonly cache: Map<string, Uint8Array> };

async function findAt(at: At, size: number, tree: SeenCheckpoint): Promise<ProvenPrefix | undefined> {
  const tiles: Tile[] = [];
  for (const ref of tilesForPrefix(size, tree.size)) tiles.push({ ...ref, hashes: await readTile(at, ref) });
  return findPrefix(size, tree, readFrom(tiles));
}

async function readTile({ net, source, cache }: At, ref: TileRef): Promise<Uint8Array> {
  const name = `${ref.level}/${ref.index}`;
  const cached = cache.get(name);
  if (cached !== undefined && cached.length >= ref.width * HASH_BYTES) return cached;
  const hashes = await fetchTile(net, source, ref);
  if (cache.size >= MAX_CACHED_TILES) cache.clear();
  cache.set(name, hashes);
  return hashes;
}

function ignoreUnserved(error: unknown): undefined {
  if (error instanceof FormatError || error instanceof SourceError) return undefined;
  throw error;
}
