/** A node's responses about its chain, decoded strictly and with bounds. */
import { FormatError } from '../bytes/format-error.js';
import {
  decodeArray,
  decodeData,
  decodeNumber,
  decodeObject,
  decodeQuantity,
  encodeQuantity,
  type JsonRpc,
} from './json-rpc.js';

/** Hashes, addresses and data are 0x and lower-case hex. */
export type EvmLog = {
  readonly address: string;
  readonly topics: readonly string[];
  readonly isDataEmpty: boolean;
  /** Position among the logs of the block. */
  readonly logIndex: number;
};

export type EvmReceipt = {
  readonly transactionHash: string;
  readonly blockHash: string;
  readonly blockNumber: number;
  /** Whether the transaction was executed without being reverted. */
  readonly succeeded: boolean;
  /** Of the contract that the transaction created. */
  readonly contractAddress: string | undefined;
  readonly logs: readonly EvmLog[];
};

export type EvmBlock = {
  readonly number: number;
  readonly hash: string;
  /** Unix time in seconds. */
  readonly timestamp: number;
  /** In wei; undefined on a chain without EIP-1559. */
  readonly baseFeePerGas: bigint | undefined;
  readonly transactionHashes: readonly string[];
};

/** A transaction of 60 million gas can emit 160,000 logs, but none that an anchor is in has many. */
const MAX_LOGS = 10_000;
const MAX_TRANSACTIONS = 100_000;
const MAX_TOPICS = 4;
const HASH_BYTES = 32;
export const ADDRESS_BYTES = 20;

/** The chain id (EIP-155). Rejects with FormatError if the answer is malformed. */
export async function getChainId(rpc: JsonRpc): Promise<number> {
  return malformed('eth_chainId', decodeNumber, await rpc('eth_chainId', []));
}

/** The receipt of a transaction; undefined if the node has none. Rejects with FormatError if the answer is malformed. */
export async function getReceipt(rpc: JsonRpc, hash: string): Promise<EvmReceipt | undefined> {
  const answer = await rpc('eth_getTransactionReceipt', [hash]);
  if (answer === null) return undefined;
  const receipt = malformed('eth_getTransactionReceipt', decodeReceipt, answer);
  if (receipt.transactionHash !== hash) throw new FormatError('the receipt is of another transaction');
  return receipt;
}

/** A block of the canonical chain; undefined if the node has none. Rejects with FormatError if the answer is malformed. */
export async function getBlock(rpc: JsonRpc, number: number): Promise<EvmBlock | undefined> {
  const answer = await rpc('eth_getBlockByNumber', [encodeQuantity(number), false]);
  if (answer === null) return undefined;
  const block = malformed('eth_getBlockByNumber', decodeBlock, answer);
  if (block.number !== number) throw new FormatError('the block has another number');
  return block;
}

/** The newest block. Rejects with FormatError if the answer is malformed. */
export async function getLatestBlock(rpc: JsonRpc): Promise<EvmBlock> {
  return malformed('eth_getBlockByNumber', decodeBlock, await rpc('eth_getBlockByNumber', ['latest', false]));
}

function decodeReceipt(value: unknown): EvmReceipt {
  const receipt = decodeObject(value);
  const status = decodeNumber(receipt.status);
  if (status > 1) throw new FormatError('a receipt has an unknown status');
  return {
    transactionHash: decodeData(receipt.transactionHash, HASH_BYTES),
    blockHash: decodeData(receipt.blockHash, HASH_BYTES),
    blockNumber: decodeNumber(receipt.blockNumber),
    succeeded: status === 1,
    contractAddress: optional(receipt.contractAddress, (value) => decodeData(value, ADDRESS_BYTES)),
    logs: decodeArray(receipt.logs, MAX_LOGS, decodeLog),
  };
}

function decodeLog(value: unknown): EvmLog {
  const log = decodeObject(value);
  if (log.removed === true) throw new FormatError('a log was removed');
  return {
    address: decodeData(log.address, ADDRESS_BYTES),
    topics: decodeArray(log.topics, MAX_TOPICS, (topic) => decodeData(topic, HASH_BYTES)),
    isDataEmpty: log.data === '0x',
    logIndex: decodeNumber(log.logIndex),
  };
}

function decodeBlock(value: unknown): EvmBlock {
  const { number, hash, timestamp, baseFeePerGas, transactions } = decodeObject(value);
  return {
    number: decodeNumber(number),
    hash: decodeData(hash, HASH_BYTES),
    timestamp: decodeTimestamp(timestamp),
    baseFeePerGas: optional(baseFeePerGas, decodeQuantity),
    transactionHashes: decodeArray(transactions, MAX_TRANSACTIONS, (item) => decodeData(item, HASH_BYTES)),
  };
}

function optional<T>(value: unknown, decode: (value: unknown) => T): T | undefined {
  return value === undefined || value === null ? undefined : decode(value);
}

/** The last second that RFC 3339 can write. */
export const MAX_TIMESTAMP = Date.UTC(9999, 11, 31, 23, 59, 59) / 1000;

function decodeTimestamp(value: unknown): number {
  const seconds = decodeNumber(value);
  if (seconds > MAX_TIMESTAMP) throw new FormatError('a block is of no year up to 9999');
  return seconds;
}

function malformed<T>(method: string, decode: (value: unknown) => T, value: unknown): T {
  try {
    return decode(value);
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    throw new FormatError(`the answer to ${method} is malformed: ${error.message}`);
  }
}
