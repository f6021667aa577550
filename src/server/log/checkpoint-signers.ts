import type { LogSigner } from '../../proof/log/log-signature.js';
import { findLogKey, findMlDsaKey, type HeldLogKeys } from '../keys/log-key.js';
import type { Log } from './store/logs.js';

/**
 * Returns the checkpoint signer of a log. It throws a SigningError if this process does not hold the log's key. The
 * log's ML-DSA-44 key signs as well if this process holds it.
 */
export function checkpointSigners(held: HeldLogKeys): (log: Log) => LogSigner {
  return (log) => {
    const { publicKey, sign } = findLogKey(held, log);
    const mlDsa = findMlDsaKey(held, log);
    return { publicKey, sign, ...(mlDsa && { mlDsa }) };
  };
}
