/** Trees and tiles, computed as their specifications have them. */
import { createHash } from 'node:crypto';

/** RFC 6962, section 2.1, as it is written there. */
export function treeHash(leaves: readonly Buffer[]): Buffer {
  if (leaves.length === 1) return leaves[0]!;
  let split = 1;
  while (split * 2 < leaves.length) split *= 2;
  const [left, right] = [treeHash(leaves.slice(0, split)), treeHash(leaves.slice(split))];
  return createHash('sha256')
    .update(Buffer.concat([Buffer.of(1), left, right]))
    .digest();
}

/** RFC 6962, section 2.1, of an entry's record. */
export function leafHashOf(record: Buffer): Buffer {
  return createHash('sha256')
    .update(Buffer.concat([Buffer.of(0), record]))
    .digest();
}

/** C2SP tlog-tiles, for fewer than a thousand tiles. */
export function pathOf(level: number | 'entries', index: number, width: number): string {
  return `tile/${level}/${String(index).padStart(3, '0')}${width === 256 ? '' : `.p/${width}`}`;
}

/** Tiles of one level of a tree: their paths with how many hashes they hold. */
export function tilesOf(level: number | 'entries', count: number): string[] {
  return Array.from({ length: Math.ceil(count / 256) }, (_, i) =>
    pathOf(level, i, Math.min(256, count - i * 256)),
  );
}

/** The records of an entry bundle. */
export function splitEntries(bundle: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at < bundle.length; ) {
    const end = at + 2 + bundle.readUInt16BE(at);
    records.push(bundle.subarray(at + 2, end));
    at = end;
  }
  return records;
}

export function splitHashes(tile: Buffer): Buffer[] {
  return Array.from({ length: tile.length / 32 }, (_, i) => tile.subarray(i * 32, i * 32 + 32));
}
