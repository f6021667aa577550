import { createPublicKey, KeyObject, sign } from 'node:crypto';
import type { ShutdownHooks } from '../core/shutdown.js';
import { type KeySource, rawEd25519PublicKey } from './secrets.js';
import { ED25519, openSocketSigner } from './socket/socket-signer.js';

/** An Ed25519 key that signs snapshot and timestamp metadata of TUF; `publicKey` and signatures are raw. */
export type TufKey = {
  readonly publicKey: Uint8Array;
  /** Rejects with a SigningError if it cannot sign now. */
  readonly sign: (data: Uint8Array) => Promise<Uint8Array>;
};

/** Opens the keys of TUF_KEY_FILE. Rejects with a SigningError if a signing process is away or lacks one. */
export async function openTufKeys(
  sources: readonly KeySource[],
  hooks: Pick<ShutdownHooks, 'add'>,
): Promise<TufKey[]> {
  const keys: TufKey[] = [];
  for (const source of sources) {
    if (source instanceof KeyObject) {
      keys.push(localTufKey(source));
      continue;
    }
    const { spki, sign, close } = await openSocketSigner(source, ED25519);
    hooks.add(close);
    const publicKey = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
    keys.push({ publicKey: rawEd25519PublicKey(publicKey), sign });
  }
  return keys;
}

/** A private key in this process. */
export function localTufKey(key: KeyObject): TufKey {
  return { publicKey: rawEd25519PublicKey(key), sign: async (data) => sign(null, data, key) };
}
