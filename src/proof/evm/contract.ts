/** The calls and events that record a digest: of the anchoring contract (src/contracts/Anchor.sol), and of EAS. */
import { keccak_256 } from '@noble/hashes/sha3.js';
import { toHex, utf8 } from '../bytes/encoding.js';
import type { EvmLog } from './chain.js';

/**
 * How a contract records a digest:
 * - `anchor`: `anchor(bytes32)` emits `Anchored(digest, sender)`.
 * - `eas`: `timestamp(bytes32)` of the Ethereum Attestation Service emits `Timestamped(digest, time)`. It reverts if the
 *   digest is known already; `getTimestamp(bytes32)` answers the time of the block that recorded it, or 0.
 */
export type EvmMethod = 'anchor' | 'eas';

const SIGNATURES = {
  anchor: { call: 'anchor(bytes32)', event: 'Anchored(bytes32,address)' },
  eas: { call: 'timestamp(bytes32)', event: 'Timestamped(bytes32,uint64)' },
} as const;

const EAS_LOOKUP = 'getTimestamp(bytes32)';

/** The data of the call that records a digest of 32 bytes. */
export function recordingCall(method: EvmMethod, digest: Uint8Array): string {
  return encodeCall(SIGNATURES[method].call, digest);
}

/** The data of the call that looks up when EAS recorded a digest of 32 bytes. */
export function easLookupCall(digest: Uint8Array): string {
  return encodeCall(EAS_LOOKUP, digest);
}

/** The first two topics of the event that records a digest: the event, and the digest. */
export function recordingTopics(method: EvmMethod, digest: Uint8Array): [event: string, digest: string] {
  return [`0x${keccak(SIGNATURES[method].event)}`, `0x${toHex(digest)}`];
}

/** Whether this log is the event by which the contract recorded the digest in a block of `timestamp`, in seconds. */
export function isRecordOf(
  log: EvmLog,
  wanted: { contract: string; method: EvmMethod; digest: Uint8Array; timestamp: number },
): boolean {
  const { contract, method, digest, timestamp } = wanted;
  const [event, topic] = recordingTopics(method, digest);
  const [first, second, third] = log.topics;
  const isThird = method === 'anchor' ? third !== undefined : third === uint256(timestamp);
  return log.address === contract && log.isDataEmpty && first === event && second === topic && isThird;
}

function encodeCall(signature: string, digest: Uint8Array): string {
  return `0x${keccak(signature).slice(0, 8)}${toHex(digest)}`;
}

function uint256(value: number): string {
  return `0x${value.toString(16).padStart(64, '0')}`;
}

function keccak(text: string): string {
  return toHex(keccak_256(utf8(text)));
}
