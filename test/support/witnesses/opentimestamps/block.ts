/** Bitcoin blocks that a test mines, with the difficulty of Bitcoin's regression test network. */
import { sha256 } from '../../../../src/proof/bytes/primitives.js';

/** The easiest target: every second nonce meets it. */
const REGTEST_BITS = 0x207fffff;

/** Mines the header of a block: 80 bytes. `time` is in Unix seconds. */
export function mineHeader(merkleRoot: Uint8Array, time: number, bits = REGTEST_BITS): Uint8Array {
  const header = Buffer.alloc(80);
  header.writeUInt32LE(0x20000000, 0);
  header.set(merkleRoot, 36);
  header.writeUInt32LE(time, 68);
  header.writeUInt32LE(bits, 72);
  for (let nonce = 0; ; nonce++) {
    header.writeUInt32LE(nonce, 76);
    // The last byte of the hash is the most significant one.
    if (sha256(sha256(header)).at(-1)! < 0x7f) return new Uint8Array(header);
  }
}
