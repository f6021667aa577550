/** The stored state of a pending request to an EVM witness. It suffices to continue after a crash at any point. */
import type { Fees } from './fees.js';

/** Chain, contract and account of the request. If the configuration has another one by now, the request starts again. */
export type EvmTarget = {
  readonly chainId: number;
  /** 0x and lower-case hex, as `account`. */
  readonly contract: string;
  readonly account: string;
};

/** The newest signed transaction of a request. */
type PendingTransaction = Fees & {
  readonly nonce: number;
  readonly gasLimit: bigint;
  /** As `eth_sendRawTransaction` takes it. */
  readonly raw: string;
  /** The newest block when it was signed. */
  readonly signedAt: number;
};

export type EvmState = {
  readonly target: EvmTarget;
  readonly transaction: PendingTransaction;
  /** Hashes of all transactions that were signed for this request, the newest last. Any of them may be executed. */
  readonly hashes: readonly string[];
  /** How many of them were reverted. */
  readonly reverts: number;
  /** The newest block when the account's nonce was first seen to be another one than the transaction's. */
  readonly displacedAt?: number | undefined;
};

const VERSION = 1;

/** Encodes a state, as JSON. */
export function encodeState(state: EvmState): Uint8Array {
  const text = JSON.stringify({ version: VERSION, ...state }, (_key, value) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
  return Buffer.from(text);
}

/** Decodes a state of `encodeState`. Throws Error if another version of the service wrote it. */
export function decodeState(bytes: Uint8Array): EvmState {
  const { version, ...state } = JSON.parse(Buffer.from(bytes).toString());
  if (version !== VERSION) throw new Error('the pending transaction was stored by another version');
  return { ...state, transaction: decodeTransaction(state.transaction) };
}

function decodeTransaction(transaction: Record<'gasLimit' | keyof Fees, string>): PendingTransaction {
  const { gasLimit, maxFeePerGas, maxPriorityFeePerGas } = transaction;
  return {
    ...(transaction as unknown as PendingTransaction),
    gasLimit: BigInt(gasLimit),
    maxFeePerGas: BigInt(maxFeePerGas),
    maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas),
  };
}

/** Whether two requests are for the same contract, by the same account. */
export function isSameTarget(a: EvmTarget, b: EvmTarget): boolean {
  return a.chainId === b.chainId && a.contract === b.contract && a.account === b.account;
}
