import { sha256 } from '../../../proof/bytes/primitives.js';
import type { Pool } from '../../database/connect.js';
import { findLogKey, type HeldLogKeys } from '../../keys/log-key.js';
import { SigningError } from '../../keys/signing-error.js';
import { type Log, publishReceiptKey } from '../../log/store/logs.js';
import type { ReceiptSigner } from '../bundles/receipts.js';

/**
 * Returns the receipt signer of a log. Rejects with a SigningError if this process does not hold the log's key, or if
 * that comes without the published key of receipts.
 */
export function receiptSigners(
  pool: Pool,
  held: Pick<HeldLogKeys, 'log'>,
): (log: Log) => Promise<ReceiptSigner> {
  const signers = new Map<number, ReceiptSigner>();
  return async (log) => {
    const known = signers.get(log.id);
    if (known !== undefined) return known;
    const key = await findLogKey(held, log).openReceiptKey(log.origin);
    if (key === undefined || !(await publishReceiptKey(pool, log.id, key.spki))) {
      throw new SigningError(`LOG_KEY_FILE does not hold the key of the receipts of ${log.origin}`);
    }
    const signer: ReceiptSigner = { keyId: sha256(key.spki), sign: key.sign };
    signers.set(log.id, signer);
    return signer;
  };
}
