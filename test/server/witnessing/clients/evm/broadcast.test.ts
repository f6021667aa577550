import t from 'tap';
import { broadcast } from '../../../../../src/server/witnessing/clients/evm/broadcast.js';
import { JsonRpcError } from '../../../../../src/server/witnessing/clients/evm/json-rpc.js';

/** What nodes answer to eth_sendRawTransaction, and the file of their repository, or the issue, that has the text. */
const TEXTS: readonly (readonly [said: string, outcome: string, source: string])[] = [
  // https://github.com/ethereum/go-ethereum
  ['already known', 'sent', 'core/txpool/errors.go'],
  ['nonce too low: next nonce 5, tx nonce 4', 'sent', 'core/txpool/validation.go'],
  ['replacement transaction underpriced', 'outbid', 'core/txpool/errors.go'],
  ['future transaction tries to replace pending', 'outbid', 'core/txpool/errors.go'],
  ['transaction underpriced: gas tip cap 0, minimum needed 1', 'too_cheap', 'core/txpool/validation.go'],
  [
    'transaction gas price below minimum: gas tip cap 0, minimum needed 1',
    'too_cheap',
    'core/txpool/errors.go',
  ],
  ['max fee per gas less than block base fee', 'too_cheap', 'core/error.go'],
  ['txpool is full', 'too_cheap', 'core/txpool/legacypool/legacypool.go'],
  [
    'insufficient funds for gas * price + value: balance 0, tx cost 24000, overshot 24000',
    'no_funds',
    'core/txpool/validation.go',
  ],
  // https://github.com/erigontech/erigon
  ['already known', 'sent', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['ALREADY_EXISTS: already known', 'sent', 'issues/20826'],
  ['mined', 'sent', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['INTERNAL_ERROR: mined', 'sent', 'issues/5214 has the prefix'],
  ['nonce too low', 'sent', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['existing txn with same hash', 'sent', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['INTERNAL_ERROR: existing tx with same hash', 'sent', 'releases of 2022'],
  ['INTERNAL_ERROR: could not replace existing tx', 'outbid', 'issues/5214'],
  [
    'RPC error response: INTERNAL_ERROR: could not replace existing tx',
    'outbid',
    '0xPolygon/cdk-erigon/issues/1514',
  ],
  ['replaced by transaction with higher tip', 'outbid', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['replacement transaction underpriced', 'outbid', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['underpriced', 'too_cheap', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['fee too low', 'too_cheap', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['pending sub-pool is full', 'too_cheap', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['baseFee sub-pool is full', 'too_cheap', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  ['insufficient funds', 'no_funds', 'txnprovider/txpool/txpoolcfg/txpoolcfg.go'],
  // https://github.com/NethermindEth/nethermind: until 2026 the names of its enumeration
  ['AlreadyKnown', 'sent', 'issues/12153'],
  [
    'OldNonce, Current nonce: 5, nonce of rejected tx: 4',
    'sent',
    'src/Nethermind/Nethermind.TxPool/AcceptTxResult.cs',
  ],
  ['already known', 'sent', 'src/Nethermind/Nethermind.TxPool/AcceptTxResult.cs'],
  ['nonce too low', 'sent', 'src/Nethermind/Nethermind.TxPool/AcceptTxResult.cs'],
  ['ReplacementNotAllowed', 'outbid', 'issues/12153'],
  ['replacement transaction underpriced', 'outbid', 'src/Nethermind/Nethermind.TxPool/AcceptTxResult.cs'],
  ['FeeTooLow', 'too_cheap', 'issues/12153'],
  ['FeeTooLowToCompete', 'too_cheap', 'pull/12157: the pool is full'],
  ['transaction underpriced', 'too_cheap', 'src/Nethermind/Nethermind.TxPool/AcceptTxResult.cs'],
  ['InsufficientFunds, Account balance: 302, cumulative cost: 580', 'no_funds', 'issues/4829'],
  // https://github.com/hyperledger/besu, all of RpcErrorType.java
  ['Known transaction', 'sent', 'ETH_SEND_TX_ALREADY_KNOWN'],
  ['Nonce too low', 'sent', 'NONCE_TOO_LOW'],
  ['Replacement transaction underpriced', 'outbid', 'ETH_SEND_TX_REPLACEMENT_UNDERPRICED'],
  ['Gas price below configured minimum gas price', 'too_cheap', 'GAS_PRICE_TOO_LOW'],
  ['Gas price below current base fee', 'too_cheap', 'GAS_PRICE_BELOW_CURRENT_BASE_FEE'],
  ['Upfront cost exceeds account balance', 'no_funds', 'TRANSACTION_UPFRONT_COST_EXCEEDS_BALANCE'],
  // https://github.com/paradigmxyz/reth: crates/rpc/rpc-eth-types/src/error/mod.rs
  ['already known', 'sent', 'RpcPoolError'],
  ['replacement transaction underpriced', 'outbid', 'RpcPoolError'],
  ['transaction underpriced', 'too_cheap', 'RpcPoolError'],
  ['txpool is full', 'too_cheap', 'RpcPoolError'],
  ['max fee per gas less than block base fee', 'too_cheap', 'RpcInvalidTransactionError'],
  ['insufficient funds for gas * price + value: have 1 want 2', 'no_funds', 'RpcInvalidTransactionError'],
  // https://github.com/foundry-rs/foundry: crates/anvil/src/eth/error.rs
  ['Tx: [0xab] already Imported', 'sent', 'PoolError'],
  ['nonce too low', 'sent', 'InvalidTransactionError'],
  ['Tx: [0xab] insufficient gas price to replace existing transaction', 'outbid', 'PoolError'],
  ['max fee per gas less than block base fee', 'too_cheap', 'InvalidTransactionError'],
  ['Insufficient funds for gas * price + value', 'no_funds', 'InvalidTransactionError'],
];

/** What an operator has to see as it is. */
const UNKNOWN = [
  'nonce too high', // geth, Besu: a transaction before it has disappeared
  'account limit exceeded: pooled 16 txs',
  'tx fee (1.20 ether) exceeds the configured cap (1.00 ether)',
  'Transaction fee cap exceeded',
  'exceeds block gas limit',
  'Initial sync is still in progress',
  'spammer',
  'An invalid transaction with a lower nonce exists',
  'we have determined something',
  '',
];

const answering = (said: string) => async () => {
  // A host may be named after anything.
  throw new JsonRpcError(-32_000, `already-known.example.com answered with: ${said}`, said);
};

t.test('the errors of nodes to a transaction are classified', async (t) => {
  for (const [said, outcome, source] of TEXTS) {
    t.equal(await broadcast(answering(said), '0x'), outcome, `${said} (${source})`);
  }
});

t.test('unknown errors are passed on', async (t) => {
  for (const said of UNKNOWN) {
    const error = await broadcast(answering(said), '0x').catch((error: unknown) => error);
    t.match(error, { name: 'JsonRpcError', said }, said);
  }
});
