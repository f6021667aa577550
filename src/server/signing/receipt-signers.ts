import { sign } from 'node:crypto';
import { sha256 } from '../../proof/bytes/primitives.js';
import { deriveReceiptKey } from '../keys/receipt-key.js';
import { rawEd25519PublicKey, type Secrets, signingKeysOf } from '../keys/secrets.js';
import type { ReceiptSigner } from '../rpc/attestations/receipts.js';
import type { Pool } from '../store/database/connect.js';
import { type Log, publishReceiptKey } from '../store/log/logs.js';

/** Returns the receipt signer of a log. Rejects if this process does not hold the log's key. */
export function receiptSigners(
  pool: Pool,
  { log: keys }: Pick<Secrets, 'log'>,
): (log: Log) => Promise<ReceiptSigner> {
  const signers = new Map<number, ReceiptSigner>();
  return async (log) => {
    const known = signers.get(log.id);
    if (known !== undefined) return known;
    const held = signingKeysOf(keys, log.environment);
    const key = held.find((one) => Buffer.compare(rawEd25519PublicKey(one), log.publicKey) === 0);
    if (key === undefined) throw new Error(`LOG_KEY_FILE does not hold the key of the log ${log.origin}`);
    const { privateKey, spki } = deriveReceiptKey(key, log.origin);
    await publishReceiptKey(pool, log.id, spki);
    const signer: ReceiptSigner = {
      keyId: sha256(spki),
      sign: (data) => sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
    };
    signers.set(log.id, signer);
    return signer;
  };
}
