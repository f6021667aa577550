/**
 * Where the parts of a log are found by HTTP: the paths of C2SP tlog-tiles, below the log's URL. A partial tile
 * (the right edge of the tree at some size) names its width, so the content of a path never changes.
 */

/** Hashes in a full tile, and leaf records in a full entry bundle. */
export const TILE_WIDTH = 256;

/** Highest level the path grammar knows; a tree below 2^53 leaves ends at level 6. */
const MAX_LEVEL = 63;

/** A tile (`level` 0 holds leaf hashes) or an entry bundle (`entries`), and its number of hashes or records. */
export interface TileAddress {
  readonly level: number | 'entries';
  readonly index: number;
  readonly width: number;
}

/** `tile/<L>/<N>[.p/<W>]` or `tile/entries/<N>[.p/<W>]`, without a leading slash. */
export function tilePath({ level, index, width }: TileAddress): string {
  const suffix = width === TILE_WIDTH ? '' : `.p/${width}`;
  return `tile/${level}/${indexPath(index)}${suffix}`;
}

/** Parses a tile path. Undefined if it is not the canonical form of an address. */
export function parseTilePath(path: string): TileAddress | undefined {
  if (path.length > 100) return undefined;
  const match = /^tile\/(entries|\d{1,2})\/((?:x\d{3}\/)*\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path);
  if (!match) return undefined;
  const [, level, groups, width] = match;
  const address: TileAddress = {
    level: level === 'entries' ? 'entries' : Number(level),
    index: Number(groups!.replaceAll(/[x/]/g, '')),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  return isAddress(address) && tilePath(address) === path ? address : undefined;
}

/** 1234067 as `x001/x234/067`: groups of three digits, all but the last behind an x. */
function indexPath(index: number): string {
  const digits = String(index);
  const groups = [digits.slice(-3).padStart(3, '0')];
  for (let end = digits.length - 3; end > 0; end -= 3) {
    groups.unshift(`x${digits.slice(Math.max(0, end - 3), end).padStart(3, '0')}`);
  }
  return groups.join('/');
}

function isAddress({ level, index, width }: TileAddress): boolean {
  const levelFits = level === 'entries' || level <= MAX_LEVEL;
  return levelFits && Number.isSafeInteger(index) && width >= 1 && width <= TILE_WIDTH;
}
