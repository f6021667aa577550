/** Continues a pending request: sends its transaction, replaces it if it is stuck, and waits for its confirmations. */
import { type EvmReceipt, getBlock, getLatestBlock, getReceipt } from '../../../../proof/evm/chain.js';
import { checkOnChain } from '../../../../proof/evm/check.js';
import { ANCHOR_METHOD, isRecordOf, recordingCall } from '../../../../proof/evm/contract.js';
import type { EvmEvidence } from '../../../../proof/evm/evidence.js';
import type { JsonRpc } from '../../../../proof/evm/json-rpc.js';
import { broadcast } from './broadcast.js';
import { replacementFees } from './fees.js';
import {
  aboveCap,
  getFeeMarket,
  getNonce,
  type Payer,
  requireContract,
  requireFunds,
  sign,
  signNext,
} from './prepare.js';
import { type EvmState, type EvmTarget, isSameTarget } from './state.js';

/** One request: the digest to record, where, and how many blocks must have the event, its own included. */
export type EvmRequest = {
  readonly rpc: JsonRpc;
  readonly payer: Payer;
  readonly target: EvmTarget;
  readonly digest: Uint8Array;
  readonly confirmations: number;
};

/**
 * - `landed`: the event has its confirmations.
 * - `store`: the new state must be stored before the request continues, which it can at once.
 * - `wait`: for the chain, for the reason given.
 */
type Progress =
  | { readonly type: 'landed'; readonly evidence: EvmEvidence }
  | { readonly type: 'store'; readonly state: EvmState }
  | ({ readonly type: 'wait'; readonly state: EvmState } & Waiting);

/** The cause of a request's wait: one line for operators, and its class for everybody. */
export type Waiting = { readonly reason: string; readonly waitsOn: WaitsOn };

/** The public classes of causes of a wait. */
export type WaitsOn = 'execution' | 'confirmations' | 'fees' | 'funds' | 'nonce';

/** A transaction that was not executed within this many blocks is replaced. */
const STUCK_BLOCKS = 6;
/** A contract that reverts transactions after accepting their estimate would cost gas for ever. */
const MAX_REVERTS = 3;

/**
 * Starts a request, or starts `earlier` again. Nothing is sent. Rejects with a line for operators if the transaction
 * cannot be paid for now.
 */
export async function start(request: EvmRequest, earlier?: EvmState): Promise<EvmState> {
  const { rpc, payer, target, digest } = request;
  await requireContract(rpc, target);
  const call = { to: target.contract, data: recordingCall(digest) };
  const { hash, ...transaction } = await signNext(rpc, payer, call);
  const { hashes, reverts } = earlier ?? { hashes: [], reverts: 0 };
  return { target, transaction, hashes: [...hashes, hash], reverts };
}

/** Continues a request from a stored state, also repeatedly from the same one. */
export async function proceed(request: EvmRequest, state: EvmState): Promise<Progress> {
  const { rpc, target } = request;
  if (!isSameTarget(state.target, target)) return { type: 'store', state: await start(request) };
  const receipt = await findReceipt(rpc, state.hashes);
  return receipt === undefined ? followNonce(request, state) : followReceipt(request, state, receipt);
}

/** Any transaction of the request may have been executed, one that succeeded first. */
async function findReceipt(rpc: JsonRpc, hashes: readonly string[]): Promise<EvmReceipt | undefined> {
  let reverted: EvmReceipt | undefined;
  for (const hash of hashes.toReversed()) {
    const receipt = await getReceipt(rpc, hash);
    if (receipt?.succeeded) return receipt;
    reverted ??= receipt;
  }
  return reverted;
}

async function followReceipt(request: EvmRequest, state: EvmState, receipt: EvmReceipt): Promise<Progress> {
  if (!receipt.succeeded) return followRevert(request, state, receipt);
  const { rpc, confirmations } = request;
  const evidence = await readEvidence(request, receipt);
  if (evidence === undefined) {
    return { type: 'wait', state, reason: 'the chain is being reorganised', waitsOn: 'confirmations' };
  }
  const verdict = await checkOnChain(rpc, evidence, confirmations);
  if (verdict.type === 'confirmed') return { type: 'landed', evidence };
  return { type: 'wait', state, reason: verdict.message, waitsOn: 'confirmations' };
}

/** Undefined while the receipt is of a block that is not on the canonical chain. */
async function readEvidence(
  { rpc, target, digest }: EvmRequest,
  receipt: EvmReceipt,
): Promise<EvmEvidence | undefined> {
  const { chainId, contract } = target;
  const { transactionHash, blockNumber, blockHash } = receipt;
  const block = await getBlock(rpc, blockNumber);
  if (block?.hash !== blockHash) return undefined;
  const { timestamp } = block;
  const log = receipt.logs.find((one) => isRecordOf(one, { contract, digest }));
  if (log === undefined) {
    throw new Error(
      `transaction ${transactionHash} made no event: ${contract} is no contract for method ${ANCHOR_METHOD}`,
    );
  }
  const place = {
    transactionHash,
    blockNumber,
    blockHash,
    blockTimestamp: timestamp,
    logIndex: log.logIndex,
  };
  return { chainId, contract, digest, ...place };
}

async function followRevert(
  request: EvmRequest,
  state: EvmState,
  { transactionHash }: EvmReceipt,
): Promise<Progress> {
  const reverts = state.reverts + 1;
  if (reverts >= MAX_REVERTS) {
    const { contract } = request.target;
    throw new Error(
      `${reverts} transactions to ${contract} were reverted, the last one is ${transactionHash}`,
    );
  }
  const hashes = state.hashes.filter((hash) => hash !== transactionHash);
  return { type: 'store', state: await start(request, { ...state, hashes, reverts }) };
}

type PendingTransaction = EvmState['transaction'];

/** No transaction of the request was executed: is the nonce still free? */
async function followNonce(request: EvmRequest, state: EvmState): Promise<Progress> {
  const { rpc, payer } = request;
  const nonce = await getNonce(rpc, payer.account.address);
  if (nonce !== state.transaction.nonce) return followDisplaced(request, state, nonce);
  return send(request, { ...state, displacedAt: undefined });
}

/**
 * Another transaction has the nonce, or one before it has disappeared. Nodes behind one address differ for moments, and a
 * reorganisation may undo it, so the request starts again, with another nonce, only after the confirmations.
 */
async function followDisplaced(request: EvmRequest, state: EvmState, nonce: number): Promise<Progress> {
  const { number } = await getLatestBlock(request.rpc);
  const { transaction, displacedAt = number } = state;
  if (number - displacedAt >= request.confirmations) {
    return { type: 'store', state: await start(request, state) };
  }
  return {
    type: 'wait',
    state: { ...state, displacedAt },
    reason: displacement(nonce, transaction.nonce),
    waitsOn: 'nonce',
  };
}

function displacement(nonce: number, own: number): string {
  const cause =
    nonce > own ? 'another transaction was sent from it' : 'the chain has lost one of its transactions';
  return `the account's nonce is ${nonce}, not ${own}: ${cause}`;
}

async function send(request: EvmRequest, state: EvmState): Promise<Progress> {
  const { rpc, payer } = request;
  const { transaction } = state;
  const market = await getFeeMarket(rpc);
  const isStuck = market.block - transaction.signedAt >= STUCK_BLOCKS;
  if (isStuck || market.baseFee > transaction.maxFeePerGas) {
    const fees = replacementFees(transaction, market, payer.maxFeePerGas);
    if (fees !== undefined) {
      return {
        type: 'store',
        state: await replace(request, state, { ...transaction, ...fees }, market.block),
      };
    }
  }
  if (market.baseFee > transaction.maxFeePerGas) {
    const reason = aboveCap(market.baseFee, payer.maxFeePerGas);
    return { type: 'wait', state, reason, waitsOn: 'fees' };
  }
  return { type: 'wait', state, ...(await sendNewest(request, transaction)) };
}

/** All transactions of the request have one nonce, so at most one of them is executed and paid for. */
async function replace(
  { payer, target, digest }: EvmRequest,
  state: EvmState,
  transaction: PendingTransaction,
  block: number,
): Promise<EvmState> {
  const call = { to: target.contract, data: recordingCall(digest) };
  const { hash, raw } = await sign(payer, call, transaction);
  return { ...state, transaction: { ...transaction, raw, signedAt: block }, hashes: [...state.hashes, hash] };
}

/** Describes the cause of the transaction's wait. */
async function sendNewest(
  { rpc, payer }: EvmRequest,
  { raw, nonce, gasLimit, maxFeePerGas }: PendingTransaction,
): Promise<Waiting> {
  switch (await broadcast(rpc, raw)) {
    case 'no_funds':
      await requireFunds(rpc, payer, gasLimit * maxFeePerGas);
      return { reason: 'the node says that the account lacks funds', waitsOn: 'funds' };
    case 'outbid':
      return { reason: `the node has another transaction with nonce ${nonce}`, waitsOn: 'nonce' };
    case 'too_cheap':
      return { reason: 'the node wants a higher fee', waitsOn: 'fees' };
    case 'sent':
      return { reason: 'the transaction is to be executed', waitsOn: 'execution' };
  }
}
