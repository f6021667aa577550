import { sign } from 'node:crypto';
import type { LogSigner } from '../../proof/log/log-signature.js';
import { environmentName } from '../../protocol/environment.js';
import { rawEd25519PublicKey, type Secrets, signingKeyOf } from '../keys/secrets.js';
import type { Log } from '../store/log/logs.js';

/**
 * Returns the checkpoint signer of a log. It throws if the log was created with another key than this process holds. The
 * log's ML-DSA-44 key signs as well if this process holds it.
 */
export function checkpointSigners({
  log: keys,
  logMlDsa,
}: Pick<Secrets, 'log' | 'logMlDsa'>): (log: Log) => LogSigner {
  return (log) => {
    const key = signingKeyOf(keys, log.environment);
    const publicKey = rawEd25519PublicKey(key);
    if (Buffer.compare(publicKey, log.publicKey) !== 0) {
      throw new Error(`LOG_KEY_FILE does not hold the key of the log ${log.origin}`);
    }
    const mlDsa = logMlDsa?.[environmentName(log.environment)];
    const isPublished = mlDsa !== undefined && isSame(mlDsa.publicKey, log.mlDsaPublicKey);
    return { publicKey, sign: (data) => sign(null, data, key), ...(isPublished && { mlDsa }) };
  };
}

function isSame(a: Uint8Array, b: Uint8Array | null): boolean {
  return b !== null && Buffer.compare(a, b) === 0;
}
