import { createPublicKey } from 'node:crypto';
import { ENVIRONMENTS, environmentName } from '../../protocol/environment.js';
import { unavailable } from '../core/errors.js';
import type { Principal } from '../core/principal.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { type SigningKeys, signingKeyOf } from '../keys/secrets.js';
import type { LogCache } from '../logs/log-cache.js';
import type { DsseSigner } from '../rpc/attestations/create-attestation.js';
import type { Pool } from '../store/database/connect.js';
import { type DsseKey, ensureDsseKey, listDsseKeys } from '../store/dsse-keys.js';
import { createBatchSigner } from './batch-signer.js';

/**
 * The DSSE keys of a process: the signing by them, off the main thread, and why they are to sign no more, as soon as
 * the log cache says that they were replaced.
 */
export type DsseSigners = {
  signerOf(environment: Principal['environment']): DsseSigner;
  /** For the operator; undefined while all is well. */
  unreadyReason(): Promise<string | undefined>;
};

/** A statement is trusted when a witness vouches for it before its key's end: this is the time left to do so. */
const WITNESS_MARGIN_MS = 5 * 60_000;
const REPLACED_RETRY_SECONDS = 60;

type Signer = DsseSigner & { environment: Principal['environment'] };

/**
 * Makes this process's DSSE keys the environments' signing keys. Throws when one is of the other environment, or was
 * replaced by another process long enough ago for its statements not to be trusted.
 */
export async function setUpDsseSigners(
  pool: Pool,
  keys: SigningKeys,
  deps: { logCache: LogCache; hooks: ShutdownHooks; clock: () => number },
): Promise<DsseSigners> {
  const signer = createBatchSigner(ENVIRONMENTS.map((number) => signingKeyOf(keys, number)));
  deps.hooks.add(signer.close);
  const signers: Signer[] = [];
  for (const [place, environment] of ENVIRONMENTS.entries()) {
    const spki = createPublicKey(signingKeyOf(keys, environment)).export({ type: 'spki', format: 'der' });
    await ensureDsseKey(pool, environment, spki);
    const row = (await listDsseKeys(pool)).find((key) => Buffer.compare(key.spki, spki) === 0);
    if (row === undefined || row.environment !== environment) {
      throw new Error(`DSSE_KEY_FILE has the key of another environment for ${environmentName(environment)}`);
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
    `DSSE_KEY_FILE has a key for ${name} that was replaced by another and is trusted until ${validTo.toISOString()} only: ` +
    `start with the key that replaced it, or with a new one`
  );
}
