/** Nodes of chains that are asked each question once. */
import type { JsonRpc } from '../../proof/evm/json-rpc.js';
import type { EvidenceSources } from '../../proof/verify/evidence/evidence.js';
import { createMemo } from '../../proof/verify/memo.js';

/** In characters of questions, which have about 120. */
const MAX_REMEMBERED = 16 * 1024;

/** The same sources, whose answers, or failures, are those of the first time: the bundles of a batch share their events. */
export function rememberAnswers({ evmRpc, ...sources }: EvidenceSources): EvidenceSources {
  if (evmRpc === undefined) return sources;
  const clients = new Map<number, JsonRpc | undefined>();
  const open = (chainId: number) => {
    const rpc = evmRpc(chainId);
    if (rpc === undefined) return undefined;
    const answers = createMemo<unknown>(MAX_REMEMBERED);
    return (method: string, params: readonly unknown[]) =>
      answers(JSON.stringify([method, params]), () => rpc(method, params));
  };
  return {
    ...sources,
    evmRpc: (chainId) => {
      if (!clients.has(chainId)) clients.set(chainId, open(chainId));
      return clients.get(chainId);
    },
  };
}
