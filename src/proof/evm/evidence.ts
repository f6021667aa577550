/** Evidence of an EVM witness: where on which chain the event with the checkpoint's digest is. */
import type { JsonObject } from '@bufbuild/protobuf';
import { fromHex, fromUtf8, toHex } from '../bytes/encoding.js';
import { FormatError } from '../bytes/format-error.js';
import { jcs, jcsBytes } from '../bytes/jcs.js';
import { ADDRESS_BYTES, MAX_TIMESTAMP } from './chain.js';
import { ANCHOR_METHOD } from './contract.js';

/** Hashes and the contract's address are 0x and lower-case hex. */
export type EvmEvidence = {
  /** EIP-155. */
  readonly chainId: number;
  readonly contract: string;
  /** SHA-256 of the checkpoint body. */
  readonly digest: Uint8Array;
  readonly transactionHash: string;
  readonly blockNumber: number;
  readonly blockHash: string;
  /** Unix time in seconds. */
  readonly blockTimestamp: number;
  /** Position of the event among the logs of the block. */
  readonly logIndex: number;
};

const MAX_BYTES = 1024;
const HASH_BYTES = 32;

/** Encodes evidence: canonical JSON (RFC 8785), a single encoding. */
export function encodeEvmEvidence(evidence: EvmEvidence): Uint8Array {
  return jcsBytes(membersOf(evidence));
}

/** Decodes evidence. Throws FormatError unless it is as `encodeEvmEvidence` writes it. */
export function decodeEvmEvidence(bytes: Uint8Array): EvmEvidence {
  if (bytes.length > MAX_BYTES) throw new FormatError(`evidence of more than ${MAX_BYTES} bytes`);
  const text = fromUtf8(bytes);
  const evidence = readMembers(parseObject(text));
  if (jcs(membersOf(evidence)) !== text) throw new FormatError('evidence that is not canonical');
  return evidence;
}

/** The members of {@link evmDetail}. */
export const EVM_DETAIL_MEMBERS: readonly string[] = [
  'block_hash',
  'block_number',
  'block_time',
  'chain_id',
  'contract',
  'log_index',
  'method',
  'transaction_hash',
];

/** Readable form of evidence: `detail` in batches and bundles. */
export function evmDetail(evidence: EvmEvidence): JsonObject {
  const { digest: _, block_timestamp: __, ...members } = membersOf(evidence);
  return { ...members, block_time: new Date(evidence.blockTimestamp * 1000).toISOString() };
}

function membersOf(evidence: EvmEvidence) {
  return {
    block_hash: evidence.blockHash,
    block_number: evidence.blockNumber,
    block_timestamp: evidence.blockTimestamp,
    chain_id: evidence.chainId,
    contract: evidence.contract,
    digest: toHex(evidence.digest),
    log_index: evidence.logIndex,
    method: ANCHOR_METHOD,
    transaction_hash: evidence.transactionHash,
  };
}

function readMembers(members: Readonly<Record<string, unknown>>): EvmEvidence {
  const { method, digest } = members;
  if (method !== ANCHOR_METHOD) throw new FormatError('an unknown method');
  if (typeof digest !== 'string') throw new FormatError('no digest');
  return {
    chainId: readInteger(members.chain_id),
    contract: readHex(members.contract, ADDRESS_BYTES),
    digest: fromHex(digest, HASH_BYTES),
    transactionHash: readHex(members.transaction_hash, HASH_BYTES),
    blockNumber: readInteger(members.block_number),
    blockHash: readHex(members.block_hash, HASH_BYTES),
    blockTimestamp: readInteger(members.block_timestamp, MAX_TIMESTAMP),
    logIndex: readInteger(members.log_index),
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    throw new FormatError('evidence that is not JSON');
  }
  throw new FormatError('evidence that is not an object');
}

function readInteger(value: unknown, max = Number.MAX_SAFE_INTEGER): number {
  if (!Number.isSafeInteger(value) || Number(value) < 0 || Number(value) > max) {
    throw new FormatError('not a number of its range');
  }
  return Number(value);
}

function readHex(value: unknown, length: number): string {
  if (typeof value !== 'string' || !value.startsWith('0x')) throw new FormatError('not 0x and hex');
  fromHex(value.slice(2), length);
  return value;
}
