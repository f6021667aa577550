/** The checksums of S3, computed as a stream goes by. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const CHECKSUMS = ['sha256', 'crc32', 'crc64nvme'] as const;

/** An algorithm by its name in headers, `x-amz-checksum-<name>`. */
export type ChecksumName = (typeof CHECKSUMS)[number];

/** A checksum under way; `digest` is in base64, as in headers. */
export type Checksum = { update: (chunk: Uint8Array) => void; digest: () => string };

/** Starts a checksum. */
export function startChecksum(name: ChecksumName): Checksum {
  if (name === 'crc32') return startCrc32();
  if (name === 'crc64nvme') return startCrc64();
  const hash = createHash('sha256');
  return { update: (chunk) => void hash.update(chunk), digest: () => hash.digest('base64') };
}

function startCrc32(): Checksum {
  let value = 0;
  return {
    update: (chunk) => {
      value = crc32(chunk, value);
    },
    digest: () => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value);
      return bytes.toString('base64');
    },
  };
}

/** The polynomial of CRC-64/NVME, reflected. */
const POLYNOMIAL = 0x9a6c9329ac4bc9b5n;
/** High and low halves, because arithmetic on 64-bit numbers is slow. */
const [HIGH, LOW] = makeTables();

function makeTables(): [Uint32Array, Uint32Array] {
  const tables: [Uint32Array, Uint32Array] = [new Uint32Array(256), new Uint32Array(256)];
  for (let index = 0; index < 256; index++) {
    let value = BigInt(index);
    for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ POLYNOMIAL : value >> 1n;
    tables[0][index] = Number(value >> 32n);
    tables[1][index] = Number(value & 0xffffffffn);
  }
  return tables;
}

function startCrc64(): Checksum {
  let high = 0xffffffff;
  let low = 0xffffffff;
  return {
    update: (chunk) => {
      for (const byte of chunk) {
        const index = (low ^ byte) & 0xff;
        low = ((low >>> 8) | (high << 24)) ^ (LOW[index] as number);
        high = (high >>> 8) ^ (HIGH[index] as number);
      }
    },
    digest: () => {
      const bytes = Buffer.alloc(8);
      bytes.writeUInt32BE(~high >>> 0, 0);
      bytes.writeUInt32BE(~low >>> 0, 4);
      return bytes.toString('base64');
    },
  };
}
