/** Compares evidence with a node's responses. */
import { type EvmBlock, getBlock, getChainId, getLatestBlock, getReceipt } from './chain.js';
import { isRecordOf } from './contract.js';
import type { EvmEvidence } from './evidence.js';
import type { JsonRpc } from './json-rpc.js';

/**
 * - `confirmed`: the event is on the canonical chain, under enough blocks.
 * - `refuted`: the chain contradicts the evidence.
 * - `unknown`: this node cannot tell, or not yet.
 */
export type ChainVerdict =
  | { readonly type: 'confirmed' }
  | { readonly type: 'refuted'; readonly code: string; readonly message: string }
  | { readonly type: 'unknown'; readonly message: string };

/**
 * Compares evidence with the node's canonical chain. `confirmations` is the number of blocks that must have the event,
 * its own included. Rejects with FormatError on malformed answers, and with the errors of `rpc`. The node is believed:
 * one that lies can confirm anything.
 */
export async function checkOnChain(
  rpc: JsonRpc,
  evidence: EvmEvidence,
  confirmations: number,
): Promise<ChainVerdict> {
  const chainId = await getChainId(rpc);
  if (chainId !== evidence.chainId)
    return unknown(`the node is of chain ${chainId}, not ${evidence.chainId}`);
  const block = await getBlock(rpc, evidence.blockNumber);
  if (block === undefined) return unknown(`the node has no block ${evidence.blockNumber}`);
  const wrong = checkBlock(block, evidence) ?? (await checkReceipt(rpc, block, evidence));
  if (wrong !== undefined) return wrong;
  const found = (await getLatestBlock(rpc)).number - evidence.blockNumber + 1;
  if (found < confirmations) return unknown(`the event has ${Math.max(found, 0)} of ${confirmations} blocks`);
  return { type: 'confirmed' };
}

function checkBlock(block: EvmBlock, evidence: EvmEvidence): ChainVerdict | undefined {
  const { blockNumber, blockHash, blockTimestamp, transactionHash } = evidence;
  if (block.hash !== blockHash) return refuted('block', `block ${blockNumber} of the chain is another`);
  if (block.timestamp !== blockTimestamp)
    return refuted('time', `block ${blockNumber} was made at another time`);
  if (!block.transactionHashes.includes(transactionHash)) {
    return refuted('transaction', `block ${blockNumber} has no such transaction`);
  }
  return undefined;
}

/** A node may have dropped the receipts of old blocks. */
async function checkReceipt(
  rpc: JsonRpc,
  block: EvmBlock,
  evidence: EvmEvidence,
): Promise<ChainVerdict | undefined> {
  const receipt = await getReceipt(rpc, evidence.transactionHash);
  if (receipt === undefined) return unknown('the node does not keep receipts of this age');
  if (receipt.blockHash !== block.hash) return unknown('the node is changing to another chain');
  if (!receipt.succeeded) return refuted('reverted', 'the transaction was reverted');
  const log = receipt.logs.find(({ logIndex }) => logIndex === evidence.logIndex);
  if (log === undefined || !isRecordOf(log, evidence)) {
    return refuted('event', 'the transaction has no such event');
  }
  return undefined;
}

function refuted(code: string, message: string): ChainVerdict {
  return { type: 'refuted', code, message };
}

function unknown(message: string): ChainVerdict {
  return { type: 'unknown', message };
}
