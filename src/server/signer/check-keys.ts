/** `attest signer --check`: one signature by each key. */
import { createPublicKey, randomBytes } from 'node:crypto';
import type { SignerConfig } from '../../config/signer/signer-settings.js';
import { utf8 } from '../../proof/bytes/encoding.js';
import { withShutdownHooks } from '../core/shutdown.js';
import { ECDSA_P256, ED25519 } from '../keys/socket/socket-signer.js';
import { type OpenKey, openKeys } from './open-keys.js';

/** A key, with how long its signature took, or why there is none. */
export type KeyCheck = {
  key: string;
  backend: string;
  purpose: string;
  /** Milliseconds. */
  ms?: number;
  error?: string;
};

/** Signs a value by each key that is nothing else than this value, and verifies the signatures. */
export function checkKeys(config: SignerConfig): Promise<KeyCheck[]> {
  return withShutdownHooks(async (hooks) => {
    const opened = await openKeys(config, hooks);
    return Promise.all(
      opened.map(async ({ config: { name, backend, purpose }, key, error }) => {
        const about = { key: name, backend: backend.name, purpose };
        if (key === undefined) return { ...about, error: error?.message ?? '' };
        const startedMs = performance.now();
        const problem = await findProblem(key);
        if (problem !== undefined) return { ...about, error: problem };
        return { ...about, ms: Math.round(performance.now() - startedMs) };
      }),
    );
  });
}

async function findProblem({ spki, algorithm, sign }: OpenKey): Promise<string | undefined> {
  const data = utf8(`attest signer --check ${randomBytes(16).toString('hex')}`);
  const { verify } = algorithm === 'ed25519' ? ED25519 : ECDSA_P256;
  try {
    const publicKey = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
    return verify(publicKey, data, await sign(data)) ? undefined : 'its signature is not valid';
  } catch (error) {
    return (error as Error).message;
  }
}
