/** Puts the anchoring contract on a chain. */
import { setTimeout as delay } from 'node:timers/promises';
import { ANCHOR_BYTECODE, ANCHOR_RUNTIME } from '../../../../../gen/contracts/anchor.js';
import { getChainId, getReceipt } from '../../../../proof/evm/chain.js';
import type { JsonRpc } from '../../../../proof/evm/json-rpc.js';
import type { EvmAccount } from './account.js';
import { broadcast } from './broadcast.js';
import { signNext } from './prepare.js';

type Deployment = {
  chainId: number;
  /** 0x and lower-case hex. */
  contract: string;
  transactionHash: string;
};

type DeployDeps = {
  rpc: JsonRpc;
  account: EvmAccount;
  /** Is called with the transaction's hash before it is sent. */
  onSigned: (transactionHash: string) => void;
  signal: AbortSignal;
};

const POLL_MS = 1_000;

/**
 * Creates the contract, paying at most `maxFeePerGas` wei for gas, and waits until the chain has it. Rejects with a line
 * for operators; if the transaction was sent before, it may still create the contract.
 */
export async function deployAnchor(deps: DeployDeps, maxFeePerGas: bigint): Promise<Deployment> {
  const { rpc, account, onSigned, signal } = deps;
  const chainId = await getChainId(rpc);
  const payer = { account, chainId, maxFeePerGas };
  const { hash, raw } = await signNext(rpc, payer, { data: ANCHOR_BYTECODE });
  onSigned(hash);
  for (;;) {
    const receipt = await getReceipt(rpc, hash);
    if (receipt !== undefined) {
      const contract = receipt.contractAddress;
      if (!receipt.succeeded || contract === undefined) throw new Error(`transaction ${hash} was reverted`);
      await requireAnchor(rpc, contract);
      return { chainId, contract, transactionHash: hash };
    }
    const outcome = await broadcast(rpc, raw);
    if (outcome === 'outbid') throw new Error(`${account.address} has another transaction under way`);
    await delay(POLL_MS, undefined, { signal });
  }
}

async function requireAnchor(rpc: JsonRpc, contract: string): Promise<void> {
  const code = await rpc('eth_getCode', [contract, 'latest']);
  if (code !== ANCHOR_RUNTIME) throw new Error(`${contract} has other code than the contract`);
}
