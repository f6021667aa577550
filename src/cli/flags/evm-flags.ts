/** Flags that name nodes of EVM chains. */
import { Option } from 'commander';
import type { Env } from '../../config/settings.js';
import type { JsonRpc } from '../../proof/evm/json-rpc.js';
import type { EvidenceSources } from '../../proof/verify/evidence/evidence.js';
import { UsageError } from '../cli.js';

/** Help text about them. */
export const EVM_RPC_HELP = `
Evidence of EVM witnesses is compared with the chain by its JSON-RPC: --evm-rpc <url>, or <chain id>=<url> for each of
several chains. What the RPC says is believed. Without the flag, ATTEST_EVM_RPC has the same, separated by spaces: prefer
it if a URL has a key, as other users can see the arguments of a process.`;

const TIMEOUT_MS = 20_000;
/** A block with its transactions' hashes, or a receipt with all logs of a transaction. */
const MAX_BYTES = 4 * 1024 * 1024;

/** `--evm-rpc`, which may be repeated. */
export function evmRpcFlag(): Option {
  return new Option(
    '--evm-rpc <url>',
    'JSON-RPC of a chain, as <url> or <chain id>=<url>; may be repeated',
  ).argParser((text: string, before: readonly string[] = []) => [...before, text]);
}

/** Clients of the nodes that flags, or else ATTEST_EVM_RPC, name. Throws UsageError, without the text, if one is no URL. */
export function openEvmRpcs(env: Env, flags: readonly string[] | undefined): EvidenceSources {
  const given = flags ?? env.ATTEST_EVM_RPC?.split(/\s+/).filter((text) => text !== '') ?? [];
  if (given.length === 0) return {};
  const clients = new Map(given.map((text) => [chainIdOf(text), openEvmRpc(text.replace(CHAIN_ID, ''))]));
  return { evmRpc: (chainId) => clients.get(chainId) ?? clients.get(undefined) };
}

/** A client of the node at this URL. Throws UsageError, without the text, if it is no http or https URL. */
export function openEvmRpc(url: string): JsonRpc {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new UsageError('the address of an EVM RPC is not an http or https URL');
  }
  const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES };
  return async (method, params) => {
    const { jsonRpcClient } = await import('../../server/witnessing/clients/evm/json-rpc.js');
    return jsonRpcClient({}, { url, ...limits }, new AbortController().signal)(method, params);
  };
}

const CHAIN_ID = /^([1-9]\d{0,14})=/;

/** Undefined for a node of any chain. */
function chainIdOf(text: string): number | undefined {
  const [, digits] = CHAIN_ID.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits);
}
