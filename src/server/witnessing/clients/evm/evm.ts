/** A witness that is a blockchain: a contract's event with the checkpoint's digest, in a block with a time. */
import type { JsonObject } from '@bufbuild/protobuf';
import { sha256 } from '../../../../proof/bytes/primitives.js';
import { checkOnChain } from '../../../../proof/evm/check.js';
import { ANCHOR_METHOD } from '../../../../proof/evm/contract.js';
import { decodeEvmEvidence, encodeEvmEvidence, evmDetail } from '../../../../proof/evm/evidence.js';
import type { JsonRpc } from '../../../../proof/evm/json-rpc.js';
import type { Witness, WitnessAnswer } from '../witness.js';
import type { EvmAccount } from './account.js';
import { type EvmRequest, proceed, start, type Waiting } from './poll.js';
import { requireChain } from './prepare.js';
import { decodeState, type EvmState, type EvmTarget, encodeState } from './state.js';

type EvmWitnessDeps = {
  /** A client of the chain's node whose requests the signal aborts. */
  connect: (signal: AbortSignal) => JsonRpc;
  account: EvmAccount;
};

type EvmWitnessConfig = Omit<EvmTarget, 'account'> & {
  readonly name: string;
  /** The number of blocks that must have the event, its own included. */
  readonly confirmations: number;
  /** The most that is paid for gas, in wei. */
  readonly maxFeePerGas: bigint;
};

/** Ethereum makes a block in 12 s, others are faster. */
const POLL_AFTER_MS = 5_000;

/**
 * Creates a witness. `ask` signs a transaction and sends nothing; `poll` sends it, once its state is stored. So a crash at
 * any point pays for no second transaction: all that a request signs have one nonce, unless another transaction from the
 * account takes it.
 */
export function evmWitness({ connect, account }: EvmWitnessDeps, config: EvmWitnessConfig): Witness {
  const { name, chainId, contract, confirmations, maxFeePerGas } = config;
  const target: EvmTarget = { chainId, contract, account: account.address };
  const open = async (body: Uint8Array, signal: AbortSignal): Promise<EvmRequest> => {
    const rpc = connect(signal);
    await requireChain(rpc, chainId);
    return { rpc, payer: { account, chainId, maxFeePerGas }, target, digest: sha256(body), confirmations };
  };
  return {
    name,
    kind: 'evm',
    oneAtATime: true,
    ask: async ({ body }, signal) => pending(await start(await open(body, signal)), 0),
    poll: async ({ checkpoint, state }, signal) => {
      const progress = await proceed(await open(checkpoint.body, signal), decodeState(state));
      if (progress.type === 'wait') return pending(progress.state, POLL_AFTER_MS, progress);
      if (progress.type === 'store') return pending(progress.state, 0);
      const { evidence } = progress;
      return { type: 'landed', evidence: encodeEvmEvidence(evidence), detail: evmDetail(evidence) };
    },
    recheck: async (bytes, signal) => {
      const evidence = decodeEvmEvidence(bytes);
      const verdict = await checkOnChain(connect(signal), evidence, 1);
      return verdict.type === 'refuted' ? `${verdict.message} (${evidence.transactionHash})` : undefined;
    },
  };
}

function pending(state: EvmState, pollAfterMs: number, waiting?: Waiting): WitnessAnswer {
  return { type: 'pending', state: encodeState(state), detail: detailOf(state, waiting), pollAfterMs };
}

/** Without the RPC's address, which may hold a key. */
function detailOf({ target, transaction, hashes }: EvmState, waiting?: Waiting): JsonObject {
  const { chainId, contract, account } = target;
  return {
    chain_id: chainId,
    contract,
    method: ANCHOR_METHOD,
    account,
    nonce: transaction.nonce,
    transaction_hash: hashes.at(-1)!,
    ...(waiting !== undefined && { waiting_for: waiting.reason, waits_on: waiting.waitsOn }),
  };
}
