import type { Logger } from '../../core/logger.js';
import type { Pool } from '../../database/connect.js';
import { listSecretsUnderOtherKeys, replaceSecrets } from '../../exports/store/export-secrets.js';
import { decryptSecret, encryptSecret } from '../../keys/encryption.js';
import { deriveKeyRing, type KeyRing } from '../../keys/key-ring.js';

/** Dependencies of re-encryption. `secretKeys` are those of SECRET_KEY. */
type ReencryptDeps = { pool: Pool; log: Logger; secretKeys: KeyRing };

/**
 * Encrypts the credentials of exports with the first key of SECRET_KEY, so that earlier ones can be removed. Skips those
 * whose key is lost.
 */
export async function reencryptExports({ pool, log, secretKeys }: ReencryptDeps): Promise<void> {
  const keys = deriveKeyRing(secretKeys, 'encryption');
  const [{ id: keyId }] = keys;
  for (const row of await listSecretsUnderOtherKeys(pool, keyId)) {
    const text = findText(keys, row);
    if (text === undefined) log.warn({ export: row.id }, 'the credentials of an export cannot be decrypted');
    else await replaceSecrets(pool, row, encryptSecret(keys, text, row.id));
  }
}

function findText(keys: KeyRing, { id, secrets }: { id: string; secrets: Uint8Array }): string | undefined {
  try {
    return decryptSecret(keys, secrets, id);
  } catch {
    return undefined;
  }
}
