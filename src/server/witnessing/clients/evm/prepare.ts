/** Makes and signs the transaction that records a digest. Sends nothing. */
import { getChainId, getLatestBlock } from '../../../../proof/evm/chain.js';
import { decodeNumber, decodeQuantity, type JsonRpc } from '../../../../proof/evm/json-rpc.js';
import type { EvmAccount, UnsignedTransaction } from './account.js';
import { type FeeMarket, type Fees, firstFees, formatEther, formatGwei } from './fees.js';
import { JsonRpcError, METHOD_NOT_FOUND } from './json-rpc.js';
import type { EvmState, EvmTarget } from './state.js';

/** An account on a chain, and the most that it pays for gas, in wei. */
export type Payer = { account: EvmAccount; chainId: number; maxFeePerGas: bigint };

/** Of nodes that do not suggest a tip. */
const DEFAULT_TIP = 1_000_000_000n;
/** The gas of the cheapest transaction of any chain. */
const MIN_GAS = 21_000n;
/** A call uses 24,000 on Ethereum; some chains count more. A node that lies cannot make it cost more than this. */
const MAX_GAS = 10_000_000n;

/** Rejects unless the node is of this chain, so that no transaction and no evidence is of another one. */
export async function requireChain(rpc: JsonRpc, chainId: number): Promise<void> {
  const found = await getChainId(rpc);
  if (found !== chainId) throw new Error(`the RPC is of chain ${found}, and chain_id is ${chainId}`);
}

/** Rejects unless the chain has code at the contract's address. */
export async function requireContract(rpc: JsonRpc, { contract, chainId }: EvmTarget): Promise<void> {
  const code = await rpc('eth_getCode', [contract, 'latest']);
  if (typeof code !== 'string' || code.length <= 2) {
    throw new Error(`chain ${chainId} has no contract at ${contract}`);
  }
}

/** The number of the account's executed transactions, which is the nonce of its next one. */
export async function getNonce(rpc: JsonRpc, address: string): Promise<number> {
  return decodeNumber(await rpc('eth_getTransactionCount', [address, 'latest']));
}

/** The newest block, and the fees of a transaction. Rejects on a chain without EIP-1559. */
export async function getFeeMarket(rpc: JsonRpc): Promise<FeeMarket & { block: number }> {
  const { number, baseFeePerGas } = await getLatestBlock(rpc);
  if (baseFeePerGas === undefined) throw new Error('the chain has no base fee (EIP-1559)');
  return { block: number, baseFee: baseFeePerGas, tip: await getTip(rpc) };
}

async function getTip(rpc: JsonRpc): Promise<bigint> {
  try {
    return decodeQuantity(await rpc('eth_maxPriorityFeePerGas', []));
  } catch (error) {
    if (error instanceof JsonRpcError && error.code === METHOD_NOT_FOUND) return DEFAULT_TIP;
    throw error;
  }
}

/** Why nothing is sent while the base fee is above the cap. */
export function aboveCap(baseFee: bigint, cap: bigint): string {
  return `base fee ${formatGwei(baseFee)} gwei is above max_fee_gwei ${formatGwei(cap)}`;
}

/**
 * Makes and signs a transaction with the account's next nonce, with gas as the node estimates and a fifth more. Rejects
 * with a line for operators if the base fee is above the cap, the account lacks funds, or the call would be reverted.
 */
export async function signNext(
  rpc: JsonRpc,
  payer: Payer,
  call: Pick<UnsignedTransaction, 'to' | 'data'>,
): Promise<EvmState['transaction'] & { hash: string }> {
  const { account, maxFeePerGas: cap } = payer;
  const market = await getFeeMarket(rpc);
  const fees = firstFees(market, cap);
  if (fees === undefined) throw new Error(aboveCap(market.baseFee, cap));
  const gasLimit = await estimateGas(rpc, payer, call, fees);
  await requireFunds(rpc, payer, gasLimit * fees.maxFeePerGas);
  const nonce = await getNonce(rpc, account.address);
  const signed = await sign(payer, call, { ...fees, nonce, gasLimit });
  return { ...signed, ...fees, nonce, gasLimit, signedAt: market.block };
}

/** Signs a transaction of the payer. */
export async function sign(
  { account, chainId }: Payer,
  call: Pick<UnsignedTransaction, 'to' | 'data'>,
  costs: Fees & { nonce: number; gasLimit: bigint },
): Promise<{ hash: string; raw: string }> {
  const { nonce, gasLimit, maxFeePerGas, maxPriorityFeePerGas } = costs;
  return account.sign({ ...call, chainId, nonce, gasLimit, maxFeePerGas, maxPriorityFeePerGas });
}

/** Rejects with address, balance and need unless the account has `needed` wei. */
export async function requireFunds(rpc: JsonRpc, payer: Payer, needed: bigint): Promise<void> {
  const { address } = payer.account;
  const balance = decodeQuantity(await rpc('eth_getBalance', [address, 'latest']));
  if (balance >= needed) return;
  const amounts = `has ${formatEther(balance)} and needs up to ${formatEther(needed)} of the chain's currency`;
  throw new Error(`account ${address} on chain ${payer.chainId} ${amounts} for a transaction`);
}

/** Some nodes estimate only transactions that the account can pay for. */
async function estimateGas(
  rpc: JsonRpc,
  payer: Payer,
  call: Pick<UnsignedTransaction, 'to' | 'data'>,
  { maxFeePerGas }: Fees,
): Promise<bigint> {
  let estimate: bigint;
  try {
    estimate = decodeQuantity(await rpc('eth_estimateGas', [{ from: payer.account.address, ...call }]));
  } catch (error) {
    await requireFunds(rpc, payer, MIN_GAS * maxFeePerGas);
    throw error;
  }
  const limit = estimate + estimate / 5n;
  if (limit > MAX_GAS) throw new Error(`the call would use ${estimate} gas, which is not plausible`);
  return limit;
}
