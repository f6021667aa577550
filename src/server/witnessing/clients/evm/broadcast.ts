/** Sends a signed transaction to the chain. */
import type { JsonRpc } from '../../../../proof/evm/json-rpc.js';
import { JsonRpcError } from './json-rpc.js';

/**
 * - `sent`: the node has it, or has executed one with its nonce.
 * - `outbid`: the node has another transaction with its nonce that pays as much.
 * - `too_cheap`: its fee is below the base fee, or below what the node takes.
 * - `no_funds`: the account cannot pay for it.
 */
type Broadcast = 'sent' | 'outbid' | 'too_cheap' | 'no_funds';

/**
 * The messages of nodes (geth, Erigon, Nethermind, Besu, Reth, Anvil), in the order in which they are tried; JSON-RPC has no
 * codes for it. The test has a table of the texts and where they are from.
 */
const SAYINGS: readonly (readonly [RegExp, Broadcast])[] = [
  [
    /already ?known|known transaction|already imported|with same hash|nonce too low|OldNonce|^mined$/i,
    'sent',
  ],
  [/replac/i, 'outbid'],
  [/underpriced|fee ?too ?low|base fee|(gas price|priority fee)\b.* below\b|pool is full/i, 'too_cheap'],
  [/insufficient ?funds|upfront cost exceeds/i, 'no_funds'],
];

/** Erigon's node passes its pool's errors on with their gRPC code. */
const GRPC_CODE = /^(RPC error response: )?[A-Z_]+: /;

/** Sends a transaction. Harmless if repeated. Rejects with the node's error if it is none of the known ones. */
export async function broadcast(rpc: JsonRpc, raw: string): Promise<Broadcast> {
  try {
    await rpc('eth_sendRawTransaction', [raw]);
    return 'sent';
  } catch (error) {
    if (!(error instanceof JsonRpcError)) throw error;
    const said = error.said.replace(GRPC_CODE, '');
    const known = SAYINGS.find(([saying]) => saying.test(said));
    if (known === undefined) throw error;
    return known[1];
  }
}
