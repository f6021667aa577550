/**
 * Entry bundles of C2SP tlog-tiles: up to 256 leaf records in a row, each behind its length in two bytes, big-endian.
 */
import { FormatError } from '../bytes/format-error.js';
import { TILE_WIDTH } from './tile-path.js';

/** Longest leaf record an entry bundle can hold, in bytes. */
const MAX_ENTRY_BYTES = 0xffff;

/** Bytes before each leaf record: its length. */
const ENTRY_LENGTH_BYTES = 2;

/** The bundle of these leaf records. Throws FormatError when one is too long or there are more than 256. */
export function encodeEntries(records: readonly Uint8Array[]): Uint8Array {
  if (records.length > TILE_WIDTH) throw new FormatError('more than 256 entries in a bundle');
  const bundle = new Uint8Array(
    records.reduce((total, record) => total + ENTRY_LENGTH_BYTES + record.length, 0),
  );
  let offset = 0;
  for (const record of records) {
    writeEntryLength(bundle, offset, record.length);
    bundle.set(record, offset + ENTRY_LENGTH_BYTES);
    offset += ENTRY_LENGTH_BYTES + record.length;
  }
  return bundle;
}

/** Writes what precedes a leaf record of so many bytes in a bundle. Throws FormatError when it is too long. */
function writeEntryLength(bundle: Uint8Array, offset: number, length: number): void {
  if (length > MAX_ENTRY_BYTES) throw new FormatError('an entry is longer than 65,535 bytes');
  bundle[offset] = length >> 8;
  bundle[offset + 1] = length & 0xff;
}

/** The leaf records of a bundle (views into it). Throws FormatError unless it ends exactly behind at most 256 records. */
export function decodeEntries(bundle: Uint8Array): Uint8Array[] {
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  const records: Uint8Array[] = [];
  let offset = 0;
  while (offset < bundle.length) {
    if (records.length === TILE_WIDTH) throw new FormatError('more than 256 entries in a bundle');
    if (offset + 2 > bundle.length) throw new FormatError('an entry bundle ends inside a length');
    const end = offset + 2 + view.getUint16(offset);
    if (end > bundle.length) throw new FormatError('an entry bundle ends inside an entry');
    records.push(bundle.subarray(offset + 2, end));
    offset = end;
  }
  return records;
}

/** The bundle of the first `count` leaf records of a bundle that is known to hold as many (a view into it). */
export function firstEntries(bundle: Uint8Array, count: number): Uint8Array {
  const view = new DataView(bundle.buffer, bundle.byteOffset, bundle.byteLength);
  let end = 0;
  for (let i = 0; i < count; i++) end += 2 + view.getUint16(end);
  return bundle.subarray(0, end);
}
