/** Writes zip files, also such as no program writes. */
import { crc32, deflateRawSync } from 'node:zlib';

/** A member; what is not given is as it should be. */
export type Member = {
  readonly name: string | Uint8Array;
  readonly content: Uint8Array | string;
  /** As stored; compressed by `method` by default. */
  readonly stored?: Uint8Array;
  readonly method?: number;
  readonly flags?: number;
  readonly crc?: number;
  /** The length that the directory has. */
  readonly bytes?: number;
  readonly offset?: number;
};

/** A zip file of members that are stored, or compressed by deflate with method 8; `zip64`: with the records of large files. */
export function zipOf(members: readonly Member[], { zip64 = false } = {}): Buffer {
  const bodies: Buffer[] = [];
  const entries: Buffer[] = [];
  let at = 0;
  for (const member of members) {
    const name = Buffer.from(member.name);
    const content = Buffer.from(member.content);
    const { method = 0, flags = 0x800 } = member;
    const stored = member.stored ?? (method === 8 ? deflateRawSync(content) : content);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(zip64 ? 45 : 20, 0);
    common.writeUInt16LE(flags, 2);
    common.writeUInt16LE(method, 4);
    common.writeUInt32LE(member.crc ?? crc32(content), 10);
    common.writeUInt32LE(stored.length, 14);
    common.writeUInt32LE(member.bytes ?? content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, stored]);
    bodies.push(local);
    entries.push(directoryEntry(common, name, member.offset ?? at, zip64));
    at += local.length;
  }
  const directory = Buffer.concat(entries);
  return Buffer.concat([...bodies, directory, endOf(members.length, directory.length, at, zip64)]);
}

function directoryEntry(common: Buffer, name: Buffer, offset: number, zip64: boolean): Buffer {
  const extra = zip64 ? Buffer.alloc(28) : Buffer.alloc(0);
  const shared = Buffer.from(common);
  if (zip64) {
    extra.writeUInt16LE(1, 0);
    extra.writeUInt16LE(24, 2);
    extra.writeBigUInt64LE(BigInt(common.readUInt32LE(18)), 4);
    extra.writeBigUInt64LE(BigInt(common.readUInt32LE(14)), 12);
    extra.writeBigUInt64LE(BigInt(offset), 20);
    shared.writeUInt32LE(0xffffffff, 14);
    shared.writeUInt32LE(0xffffffff, 18);
  }
  shared.writeUInt16LE(extra.length, 24);
  const tail = Buffer.alloc(14);
  tail.writeUInt32LE(zip64 ? 0xffffffff : offset, 10);
  return Buffer.concat([Buffer.from('PK\x01\x02\x14\0'), shared, tail, name, extra]);
}

function endOf(count: number, size: number, start: number, zip64: boolean): Buffer {
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  for (const at of [8, 10]) end.writeUInt16LE(zip64 ? 0xffff : count, at);
  end.writeUInt32LE(zip64 ? 0xffffffff : size, 12);
  end.writeUInt32LE(zip64 ? 0xffffffff : start, 16);
  if (!zip64) return end;
  const record = Buffer.alloc(56);
  record.write('PK\x06\x06', 'latin1');
  record.writeBigUInt64LE(44n, 4);
  for (const at of [24, 32]) record.writeBigUInt64LE(BigInt(count), at);
  record.writeBigUInt64LE(BigInt(size), 40);
  record.writeBigUInt64LE(BigInt(start), 48);
  const locator = Buffer.alloc(20);
  locator.write('PK\x06\x07', 'latin1');
  locator.writeBigUInt64LE(BigInt(start + size), 8);
  locator.writeUInt32LE(1, 16);
  return Buffer.concat([record, locator, end]);
}

/** A Zstandard frame of blocks that are stored, or of one byte that is repeated. */
export function zstdOf(blocks: readonly (Uint8Array | { byte: number; times: number })[]): Buffer {
  const pieces = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58])];
  for (const [i, block] of blocks.entries()) {
    const isRepeated = 'times' in block;
    const size = isRepeated ? block.times : block.length;
    const header = Buffer.alloc(3);
    header.writeUIntLE((size << 3) | (isRepeated ? 2 : 0) | (i === blocks.length - 1 ? 1 : 0), 0, 3);
    pieces.push(header, isRepeated ? Buffer.from([block.byte]) : Buffer.from(block));
  }
  return Buffer.concat(pieces);
}
