/** Anvil: a chain in a process of its own, with blocks when the test makes them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import type { JsonRpc } from '../../../../src/proof/evm/json-rpc.js';
import { anvil } from '../../foreign/anvil.js';

export type Anvil = {
  url: string;
  chainId: number;
  rpc: JsonRpc;
  /** Makes so many blocks, with all transactions that pay for them. */
  mine(blocks?: number): Promise<void>;
  /** Replaces the newest blocks by others without their transactions. */
  reorganise(depth: number): Promise<void>;
  /** In wei; of the next block, and of those after it nearly the same. */
  setBaseFee(wei: bigint): Promise<void>;
  setBalance(address: string, wei: bigint): Promise<void>;
  /** Sends a transaction from an account that Anvil owns, and makes a block with it. Returns the receipt. */
  execute(transaction: {
    to?: string;
    data?: string;
    value?: string;
  }): Promise<{ contractAddress: string; transactionHash: string }>;
  /** Sends a transaction as any account, without its key. Makes no block. */
  sendAs(address: string, transaction: { nonce: string; maxFeePerGas: string }): Promise<void>;
};

/** Starts a chain on a free port of 127.0.0.1 until the test ends. */
export async function startAnvil(t: Pick<Test, 'teardown'>, chainId = 31_337): Promise<Anvil> {
  const flags = ['--host', '127.0.0.1', '--port', '0', '--chain-id', String(chainId), '--no-mining'];
  const child = spawn(anvil(), flags, { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
  });
  const url = await findAddress(child.stdout);
  child.stdout.resume();
  const rpc = clientOf(url);
  const [owner] = (await rpc('eth_accounts', [])) as string[];
  const mine = async (blocks = 1) => void (await rpc('anvil_mine', [`0x${blocks.toString(16)}`]));
  return {
    url,
    chainId,
    rpc,
    mine,
    reorganise: async (depth) => void (await rpc('anvil_reorg', [depth, []])),
    setBaseFee: async (wei) => void (await rpc('anvil_setNextBlockBaseFeePerGas', [`0x${wei.toString(16)}`])),
    setBalance: async (address, wei) =>
      void (await rpc('anvil_setBalance', [address, `0x${wei.toString(16)}`])),
    execute: async (transaction) => {
      const hash = await rpc('eth_sendTransaction', [{ from: owner, ...transaction }]);
      await mine();
      return (await rpc('eth_getTransactionReceipt', [hash])) as Awaited<ReturnType<Anvil['execute']>>;
    },
    sendAs: async (address, transaction) => {
      await rpc('anvil_impersonateAccount', [address]);
      await rpc('eth_sendTransaction', [
        { from: address, to: owner, value: '0x1', maxPriorityFeePerGas: '0x1', ...transaction },
      ]);
    },
  };
}

async function findAddress(output: NodeJS.ReadableStream): Promise<string> {
  const lines = createInterface({ input: output });
  for await (const line of lines) {
    const address = /^Listening on (127\.0\.0\.1:\d+)$/.exec(line)?.[1];
    if (address !== undefined) return `http://${address}`;
  }
  throw new Error('anvil ended before it listened');
}

function clientOf(url: string): JsonRpc {
  return async (method, params) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const { result, error } = (await response.json()) as { result?: unknown; error?: { message: string } };
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
}
