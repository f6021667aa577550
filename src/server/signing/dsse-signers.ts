import { createPublicKey } from 'node:crypto';
import { ENVIRONMENTS, environmentName } from '../../protocol/environment.js';
import { unavailable } from '../core/errors.js';
import type { Principal } from '../core/principal.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { type SigningKeys, signingKeysOf } from '../keys/secrets.js';
import type { LogCache } from '../logs/log-cache.js';
import type { DsseSigner } from '../rpc/attestations/create-attestation.js';
import type { Pool } from '../store/database/connect.js';
import { type DsseKey, ensureDsseKey, listDsseKeys } from '../store/dsse-keys.js';
import { createBatchSigner } from './batch-signer.js';

/** The DSSE keys of a process. They sign on a worker thread until the log cache shows that they were replaced. */
type DsseSigners = {
  signerOf(environment: Principal['environment']): DsseSigner;
  /** Why a key may not sign any more, for `/readyz`. Returns undefined if all may. */
  unreadyReason(): Promise<string | undefined>;
};

/** A statement is trusted if a witness vouches for it before its key expires. Signing stops this long before. */
const WITNESS_MARGIN_MS = 5 * 60_000;
const REPLACED_RETRY_SECONDS = 60;

type Signer = DsseSigner & { environment: Principal['environment'] };

/**
 * Stores this process's DSSE keys as the signing keys of their environments. Throws if a key belongs to the other
 * environment, or was replaced by another process and is about to expire.
 */
export async function setUpDsseSigners(
  pool: Pool,
  keys: SigningKeys,
  deps: { logCache: LogCache; hooks: ShutdownHooks; clock: () => number },
): Promise<DsseSigners> {
  const signer = createBatchSigner(ENVIRONMENTS.map((number) => signingKeysOf(keys, number)[0]));
  deps.hooks.add(signer.close);
  const signers: Signer[] = [];
  for (const [place, environment] of ENVIRONMENTS.entries()) {
    const spki = createPublicKey(signingKeysOf(keys, environment)[0]).export({ type: 'spki', format: 'der' });
    await ensureDsseKey(pool, environment, spki);
    const row = (await listDsseKeys(pool)).find((key) => Buffer.compare(key.spki, spki) === 0);
    if (row === undefined || row.environment !== environment) {
      throw new Error(
        `DSSE_KEY_FILE holds the key of another environment for ${environmentName(environment)}`,
      );
    }
    const problem = replacedReason(row, deps.clock());
    if (problem !== undefined) throw new Error(problem);
    signers.push({ environment, keyId: row.id, spki, sign: (data) => signer.sign(place, data) });
  }
  const findProblemOf = async ({ keyId }: Signer) =>
    replacedReason(await deps.logCache.getDsseKey(keyId), deps.clock());
  return {
    signerOf: (environment) => {
      const found = signers.find((one) => one.environment === environment);
      if (found === undefined) throw new Error(`environment ${environment} has no DSSE key`);
      const sign = async (data: Uint8Array) => {
        const problem = await findProblemOf(found);
        if (problem !== undefined)
          throw unavailable('the signing key of this process was replaced', REPLACED_RETRY_SECONDS);
        return found.sign(data);
      };
      return { keyId: found.keyId, spki: found.spki, sign };
    },
    unreadyReason: async () => {
      const problems = await Promise.all(signers.map(findProblemOf));
      return problems.find((problem) => problem !== undefined);
    },
  };
}

function replacedReason({ validTo, environment }: DsseKey, nowMs: number): string | undefined {
  if (validTo === null || nowMs < validTo.getTime() - WITNESS_MARGIN_MS) return undefined;
  const name = environmentName(environment);
  return (
    `DSSE_KEY_FILE holds a key for ${name} that was replaced and is trusted only until ${validTo.toISOString()}: ` +
    `start with its replacement, or with a new key`
  );
}
