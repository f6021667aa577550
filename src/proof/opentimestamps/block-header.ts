/** Bitcoin block headers, and the check of an attestation against one. */
import { toHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { sha256 } from '../bytes/primitives.js';

/** Length of a block header in bytes. */
const BLOCK_HEADER_BYTES = 80;

/** A block header, in the parts that a timestamp depends on. */
export type BlockHeader = {
  /** 32 bytes in internal byte order, the reverse of block explorers'. */
  readonly merkleRoot: Uint8Array;
  /** The miner's clock. */
  readonly time: Date;
  /** The block's hash as block explorers show it. */
  readonly hash: string;
};

/** How far a header's time can be from real time: nodes accept blocks from up to two hours in the future. */
const TIME_ACCURACY_MS = 2 * 60 * 60 * 1_000;

/**
 * Parses a block header of 80 bytes. Throws FormatError if its hash does not meet the target that it states. It does not
 * check that the target was the network's: a header must come from a node or person that the verifier trusts.
 */
export function parseBlockHeader(bytes: Uint8Array): BlockHeader {
  if (bytes.length !== BLOCK_HEADER_BYTES) throw new FormatError('a block header does not have 80 bytes');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const hash = toDisplayHex(sha256(sha256(bytes)));
  if (BigInt(`0x${hash}`) > targetOf(view.getUint32(72, true))) {
    throw new FormatError('a block header has no proof of work');
  }
  return {
    merkleRoot: bytes.slice(36, 68),
    time: new Date(view.getUint32(68, true) * 1_000),
    hash,
  };
}

/** The latest time at which a block with this header was mined, if the miner's clock was within two hours. */
export function latestTimeOf({ time }: BlockHeader): Date {
  return new Date(time.getTime() + TIME_ACCURACY_MS);
}

/** A hash as Bitcoin's tools show it: its bytes reversed, in hex. */
export function toDisplayHex(hash: Uint8Array): string {
  return toHex(hash.slice().reverse());
}

/** The target of the compact form: an exponent of 256 and a mantissa of 23 bits. Throws FormatError if it has none. */
function targetOf(bits: number): bigint {
  const mantissa = BigInt(bits & 0x7fffff);
  const exponent = bits >>> 24;
  const isNegative = (bits & 0x800000) !== 0;
  if (isNegative || mantissa === 0n || exponent > 34) {
    throw new FormatError('a block header states no valid target');
  }
  const shift = 8n * BigInt(exponent - 3);
  const target = shift < 0n ? mantissa >> -shift : mantissa << shift;
  if (target >> 256n !== 0n) throw new FormatError('a block header states no valid target');
  return target;
}
