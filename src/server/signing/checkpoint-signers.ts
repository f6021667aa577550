import { sign } from 'node:crypto';
import type { LogSigner } from '../../proof/log/log-signature.js';
import { rawEd25519PublicKey, type Secrets, signingKeysOf } from '../keys/secrets.js';
import type { Log } from '../store/log/logs.js';

/**
 * Returns the checkpoint signer of a log. It throws if this process does not hold the log's key. The log's ML-DSA-44 key signs as well if this process holds it.
 */
export function checkpointSigners({
  log: keys,
  logMlDsa,
}: Pick<Secrets, 'log' | 'logMlDsa'>): (log: Log) => LogSigner {
  return (log) => {
    const { environment, publicKey, mlDsaPublicKey } = log;
    const key = signingKeysOf(keys, environment).find((one) => isSame(rawEd25519PublicKey(one), publicKey));
    if (key === undefined) throw new Error(`LOG_KEY_FILE does not hold the key of the log ${log.origin}`);
    const held = logMlDsa === undefined ? [] : signingKeysOf(logMlDsa, environment);
    const mlDsa = held.find((one) => isSame(one.publicKey, mlDsaPublicKey));
    return { publicKey, sign: (data) => sign(null, data, key), ...(mlDsa && { mlDsa }) };
  };
}

function isSame(a: Uint8Array, b: Uint8Array | null): boolean {
  return b !== null && Buffer.compare(a, b) === 0;
}
