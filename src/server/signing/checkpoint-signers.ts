import { sign } from 'node:crypto';
import type { CheckpointSigner } from '../../proof/log/checkpoint.js';
import { rawEd25519PublicKey, type SigningKeys, signingKeyOf } from '../keys/secrets.js';
import type { Log } from '../store/log/logs.js';

/** Returns the checkpoint signer of a log. It throws if the log was created with another key than this process holds. */
export function checkpointSigners(keys: SigningKeys): (log: Log) => CheckpointSigner {
  return (log) => {
    const key = signingKeyOf(keys, log.environment);
    const publicKey = rawEd25519PublicKey(key);
    if (Buffer.compare(publicKey, log.publicKey) !== 0) {
      throw new Error(`LOG_KEY_FILE does not hold the key of the log ${log.origin}`);
    }
    return { publicKey, sign: (data) => sign(null, data, key) };
  };
}
