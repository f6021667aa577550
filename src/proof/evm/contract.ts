/** The call and the event of the anchoring contract (src/contracts/Anchor.sol). */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { toHex, utf8 } from '../bytes/encoding.js';
import type { EvmLog } from './chain.js';

/** How the contract records a digest, in settings, evidence and trust roots: `anchor(bytes32)` emits an event. */
export const ANCHOR_METHOD = 'anchor';

/** The data of the call that records a digest of 32 bytes. */
export function recordingCall(digest: Uint8Array): string {
  return `0x${keccak('anchor(bytes32)').slice(0, 8)}${toHex(digest)}`;
}

/** Whether this log is the event by which the contract recorded the digest: topics are event, digest and sender. */
export function isRecordOf(
  { address, topics, isDataEmpty }: EvmLog,
  { contract, digest }: { contract: string; digest: Uint8Array },
): boolean {
  const [event, recorded, sender] = topics;
  const isOfDigest =
    event === `0x${keccak('Anchored(bytes32,address)')}` && recorded === `0x${toHex(digest)}`;
  return address === contract && isDataEmpty && isOfDigest && sender !== undefined;
}

function keccak(text: string): string {
  return toHex(keccak_256(utf8(text)));
}
