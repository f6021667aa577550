/** An EVM witness on a chain of its own. */
import { createSecretKey, randomBytes } from 'node:crypto';
import type { Test } from 'tap';
import { checkpointBody } from '../../../../src/proof/log/checkpoint.js';
import { type EvmAccount, evmAccount } from '../../../../src/server/witnessing/clients/evm/account.js';
import { evmWitness } from '../../../../src/server/witnessing/clients/evm/evm.js';
import { jsonRpcClient } from '../../../../src/server/witnessing/clients/evm/json-rpc.js';
import type {
  PendingRequest,
  Witness,
  WitnessAnswer,
} from '../../../../src/server/witnessing/clients/witness.js';
import { type Anvil, startAnvil } from './anvil.js';
import { deployAnchor } from './contracts.js';

export const GWEI = 1_000_000_000n;
export const ETHER = GWEI * GWEI;

type Config = Partial<Parameters<typeof evmWitness>[1]> & { url?: string; timeoutMs?: number };

export type EvmScene = {
  anvil: Anvil;
  account: EvmAccount;
  contract: string;
  /** A witness of the scene's account and contract, with 2 confirmations and 50 gwei. */
  witness(config?: Config): Witness;
};

export type Pending = Extract<WitnessAnswer, { type: 'pending' }>;
export type Landed = Extract<WitnessAnswer, { type: 'landed' }>;

/** Starts a chain with a contract and an account that has one ether. */
export async function evmScene(t: Pick<Test, 'teardown'>): Promise<EvmScene> {
  const anvil = await startAnvil(t);
  const account = evmAccount(createSecretKey(randomBytes(32)));
  await anvil.setBalance(account.address, ETHER);
  const contract = await deployAnchor(anvil);
  return {
    anvil,
    account,
    contract,
    witness: ({ url = anvil.url, timeoutMs = 5_000, ...config } = {}) =>
      evmWitness(
        { account, connect: (signal) => jsonRpcClient({}, { url, timeoutMs, maxBytes: 1 << 22 }, signal) },
        {
          name: 'chain',
          chainId: anvil.chainId,
          contract,
          confirmations: 2,
          maxFeePerGas: 50n * GWEI,
          ...config,
        },
      ),
  };
}

/** A checkpoint of this size of a log. */
export function checkpointOf(treeSize: number, origin = 'live.log.example'): PendingRequest['checkpoint'] {
  const rootHash = new Uint8Array(32).fill(treeSize);
  const body = Buffer.from(checkpointBody({ origin, size: treeSize, rootHash }));
  return { origin, treeSize, rootHash: Buffer.from(rootHash).toString('hex'), body };
}

const NEVER = new AbortController().signal;

/** Asks for a checkpoint. */
export async function ask(witness: Witness, checkpoint = checkpointOf(1)): Promise<Pending> {
  const request = { ...checkpoint, note: '', coveredSize: 0, proveConsistency: async () => [] };
  const answer = await witness.ask(request, NEVER);
  if (answer.type !== 'pending') throw new Error('an EVM witness answered at once');
  return answer;
}

/** Polls once from a state. */
export async function poll(
  witness: Witness,
  { state, detail }: Pending,
  checkpoint = checkpointOf(1),
): Promise<WitnessAnswer> {
  if (witness.poll === undefined) throw new Error('the witness has no pending requests');
  const answer = await witness.poll({ checkpoint, state, detail, ageMs: 0 }, NEVER);
  if (answer.type === 'abandoned') throw new Error(answer.reason);
  return answer;
}

/** Polls once, and fails if the evidence has landed. */
export async function pollPending(
  witness: Witness,
  from: Pending,
  checkpoint = checkpointOf(1),
): Promise<Pending> {
  const answer = await poll(witness, from, checkpoint);
  if (answer.type !== 'pending') throw new Error('the evidence has landed already');
  return answer;
}

/** Polls until the evidence lands, with a block after each poll that waits for the chain. */
export async function pollUntilLanded(
  anvil: Anvil,
  witness: Witness,
  from: Pending,
  checkpoint = checkpointOf(1),
): Promise<Landed> {
  let answer: WitnessAnswer = from;
  for (let polls = 0; answer.type === 'pending'; polls++) {
    if (polls > 50) throw new Error(`it never lands: ${JSON.stringify(answer.detail)}`);
    if (answer.pollAfterMs > 0) await anvil.mine();
    answer = await poll(witness, answer, checkpoint);
  }
  return answer;
}

/** How many transactions of an account were executed. */
export async function countTransactions({ anvil, account }: EvmScene): Promise<number> {
  return Number(await anvil.rpc('eth_getTransactionCount', [account.address, 'latest']));
}
