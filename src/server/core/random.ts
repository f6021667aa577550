import { randomFillSync } from 'node:crypto';
import { ulid } from 'ulid';

/** Randomness from the system's cryptographic source, taken in blocks: a call of its own costs 11 µs, a share of one 0.1. */
export type RandomSource = {
  /** As many fresh bytes as asked for, at most 1 KiB; the caller owns them. */
  bytes(size: number): Uint8Array;
  /** One of 256 numbers from 0 up to 1. */
  fraction(): number;
  /** A ULID of a time in Unix milliseconds. */
  ulid(timeMs: number): string;
};

const BLOCK_BYTES = 16 * 1024;
const MAX_BYTES = 1024;

/** A source with a block of its own; no byte is handed out twice. */
export function createRandomSource(): RandomSource {
  let block = Buffer.alloc(0);
  let used = 0;
  const take = (size: number): number => {
    if (used + size > block.length) {
      block = randomFillSync(Buffer.allocUnsafeSlow(BLOCK_BYTES));
      used = 0;
    }
    used += size;
    return used - size;
  };
  const bytes = (size: number) => {
    if (size > MAX_BYTES) throw new RangeError(`at most ${MAX_BYTES} random bytes at a time`);
    const start = take(size);
    const taken = Uint8Array.from(block.subarray(start, used));
    block.fill(0, start, used);
    return taken;
  };
  const fraction = () => {
    const at = take(1);
    return block.readUInt8(at) / 256;
  };
  return { bytes, fraction, ulid: (timeMs) => ulid(timeMs, fraction) };
}
