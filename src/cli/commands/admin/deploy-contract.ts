import type { Command } from 'commander';
import { openSettings, parseValue } from '../../../config/settings.js';
import { evmKeyFile, evmPrivateKey, weiOfGwei } from '../../../config/witnesses/evm.js';
import { evmAccount } from '../../../server/witnessing/clients/evm/account.js';
import { deployAnchor } from '../../../server/witnessing/clients/evm/deploy.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import { openEvmRpc } from '../../flags/evm-flags.js';
import { addHelp } from '../../output/help.js';

type Flags = { rpcUrl?: string; keyFile?: string; maxFeeGwei: string; json?: boolean };

const HELP = `
Creates the contract that records checkpoints (method "anchor" of EVM witnesses) and prints its address. It has no owner
and no settings: any number of services can share one.

The account of the key pays. Without --key-file the key is EVM_PRIVATE_KEY. Without --rpc-url the URL is ATTEST_EVM_RPC:
prefer it if the URL has a key, as other users can see the arguments of a process.`;

const TIMEOUT_MS = 10 * 60_000;

/** `attest witnesses deploy-contract`. */
export function addDeployContract(witnesses: Command, cli: Cli, examples: readonly string[]): void {
  addHelp(witnesses.command('deploy-contract'), HELP, examples)
    .description('create the contract that EVM witnesses call, and print its address')
    .option('--rpc-url <url>', 'JSON-RPC of the chain (ATTEST_EVM_RPC)')
    .option('--key-file <file>', 'private key of the account that pays, 64 hex digits (EVM_PRIVATE_KEY)')
    .option('--max-fee-gwei <number>', 'the most that is paid for gas', '50')
    .option('--json', 'print JSON')
    .action((flags: Flags) => deploy(cli, flags));
}

async function deploy(cli: Cli, flags: Flags): Promise<void> {
  const url = flags.rpcUrl ?? cli.env.ATTEST_EVM_RPC;
  if (!url) throw new UsageError("required option '--rpc-url <url>' not specified, nor ATTEST_EVM_RPC");
  const maxFeePerGas = weiOfGwei(Number(flags.maxFeeGwei));
  if (maxFeePerGas === undefined) throw new UsageError('--max-fee-gwei is not a number above 0');
  const account = evmAccount(readKey(cli, flags));
  const onSigned = (hash: string) => printError(cli, `transaction ${hash} from ${account.address}`);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const { contract, chainId, transactionHash } = await deployAnchor(
      { rpc: openEvmRpc(url), account, onSigned, signal },
      maxFeePerGas,
    );
    const json = { address: contract, chain_id: chainId, transaction_hash: transactionHash };
    print(cli, flags.json ? JSON.stringify(json) : contract);
  } catch (error) {
    if (signal.aborted) throw new Error('no block has the transaction after 10 minutes; a later one may');
    throw error;
  }
}

function readKey(cli: Cli, { keyFile }: Flags) {
  const settings = openSettings(cli.env);
  const fromFile =
    keyFile === undefined ? undefined : parseValue(settings.report, '--key-file', evmKeyFile, keyFile);
  const key = keyFile === undefined ? settings.require('EVM_PRIVATE_KEY', evmPrivateKey) : fromFile;
  settings.assertValid();
  if (key === undefined) throw new UsageError('there is no key');
  return key;
}
