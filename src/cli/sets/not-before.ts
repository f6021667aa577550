/** The checkpoint that a set names to show that it was closed later. */
import type { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { toHex } from '../../proof/bytes/encoding.js';
import type { NotBefore } from '../../proof/set/head.js';
import { isValidAt, readTrust } from '../../proof/verify/trust.js';
import { environmentNumber } from '../../protocol/environment.js';
import { openSeen } from '../audit/checkpoint/seen-checkpoint.js';
import { fetchCheckpoint, tiledSource } from '../audit/source/log-source.js';
import type { Cli } from '../cli.js';
import type { ClientFlags } from '../flags/client-flags.js';
import { findService, openClient } from '../flags/open-client.js';
import { getTrustRoots } from '../input/trust-roots.js';

type Flags = ClientFlags & { readonly trustRoots?: string; readonly verifyUrl?: string };

const RETRY_DELAYS_MS = [500, 2_000];
const TIMEOUT_MS = 15_000;

/**
 * Fetches the newest checkpoint of the log that the API key submits to, and verifies its signature. Throws Error if there is
 * none, or only that of the empty log, whose root everybody knows.
 */
export async function findNotBefore(cli: Cli, flags: Flags): Promise<NotBefore> {
  const { document } = await getTrustRoots(cli.env, flags);
  const { trust, problems } = readTrust(document);
  if (trust === undefined) {
    const [problem] = problems;
    throw new Error(`the trust roots cannot be read: ${problem?.path || 'the document'} ${problem?.message}`);
  }
  const environment = await findEnvironment(cli, flags);
  const log = trust.logs.filter((one) => one.environment === environment && isValidAt(one, cli.now())).at(-1);
  if (log === undefined || log.url === '')
    throw new Error('the trust roots do not say where the log is published');
  const source = tiledSource('the log', log.url);
  const net = { signal: new AbortController().signal, retryDelaysMs: RETRY_DELAYS_MS, timeoutMs: TIMEOUT_MS };
  const note = await fetchCheckpoint(net, source);
  if (note === undefined) throw new Error(`the log has published no checkpoint at ${source.checkpoint} yet`);
  const signers = { log, cosigners: trust.cosigners };
  const seen = await openSeen({ note: Buffer.from(note).toString(), from: source.name }, signers);
  if (!seen.isSigned || seen.forged.length > 0) {
    throw new Error(`the checkpoint at ${source.checkpoint} is not signed by its log`);
  }
  if (seen.size === 0) throw new Error('the log is empty: nothing was before the set');
  return { origin: seen.origin, rootHash: toHex(seen.rootHash), treeSize: seen.size };
}

/** The environment of the API key; one that is exchanged for a token does not show it before. */
async function findEnvironment(cli: Cli, flags: Flags): Promise<Environment | undefined> {
  const { apiKey } = findService(cli.env, flags);
  if (apiKey !== undefined) return environmentNumber(apiKey.startsWith('svc_test_') ? 'test' : 'live');
  return (await openClient(cli, flags).service.getMe()).apiKey?.environment;
}
