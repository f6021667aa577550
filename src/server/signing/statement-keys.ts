import { createPublicKey, type KeyObject } from 'node:crypto';
import { ENVIRONMENTS } from '../../protocol/environment.js';
import type { ShutdownHooks } from '../core/shutdown.js';
import { type SigningKeys, signingKeysOf } from '../keys/secrets.js';
import { createBatchSigner } from './batch-signer.js';

/** A key that signs statements. The private part may be elsewhere: only these two are ever asked of it. */
type StatementKey = {
  /** The public key, SPKI in DER. */
  spki: Uint8Array;
  /** ECDSA P-256 with SHA-256 in DER. Rejects if it cannot sign now. */
  sign(data: Uint8Array): Promise<Uint8Array>;
};

/** A statement key of an environment, a proto number. */
export type HeldKey = StatementKey & { environment: number };

/** Opens the DSSE keys of a process. Keys in files sign on one worker thread, in batches. */
export function openStatementKeys(keys: SigningKeys, hooks: Pick<ShutdownHooks, 'add'>): HeldKey[] {
  const held = ENVIRONMENTS.flatMap((environment) =>
    signingKeysOf(keys, environment).map((key) => ({ environment, key })),
  );
  const signer = createBatchSigner(held.map(({ key }) => key));
  hooks.add(signer.close);
  return held.map(({ environment, key }, place) => ({
    environment,
    spki: spkiOf(key),
    sign: (data) => signer.sign(place, data),
  }));
}

function spkiOf(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ type: 'spki', format: 'der' });
}
