/** Sends a signed transaction to the chain. */
import type { JsonRpc } from '../../../proof/evm/json-rpc.js';
import { JsonRpcError } from './json-rpc.js';

/**
 * - `sent`: the node has it, or has executed one with its nonce.
 * - `outbid`: the node has another transaction with its nonce that pays as much.
 * - `too_cheap`: its fee is below the base fee, or below what the node takes.
 * - `no_funds`: the account cannot pay for it.
 */
type Broadcast = 'sent' | 'outbid' | 'too_cheap' | 'no_funds';

/** What nodes say (geth, Erigon, Nethermind, Besu, Reth, Anvil); JSON-RPC has no codes for it. */
const SAYINGS: readonly (readonly [RegExp, Broadcast])[] = [
  [
    /already known|known transaction|already imported|already exists|already in|nonce too low|OldNonce/i,
    'sent',
  ],
  [/replac|fee too low to compete|same nonce/i, 'outbid'],
  [/underpriced|less than block base fee|below.*base fee|feeTooLow|max fee per gas/i, 'too_cheap'],
  [/insufficient|not enough|upfront cost exceeds/i, 'no_funds'],
];

/** Sends a transaction. Harmless if repeated. Rejects with the node's error if it is none of the known ones. */
export async function broadcast(rpc: JsonRpc, raw: string): Promise<Broadcast> {
  try {
    await rpc('eth_sendRawTransaction', [raw]);
    return 'sent';
  } catch (error) {
    if (!(error instanceof JsonRpcError)) throw error;
    const known = SAYINGS.find(([saying]) => saying.test(error.message));
    if (known === undefined) throw error;
    return known[1];
  }
}
