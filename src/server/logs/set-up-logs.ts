import { ENVIRONMENTS, environmentName } from '../../protocol/environment.js';
import type { Logger } from '../core/logger.js';
import { deriveReceiptKey } from '../keys/receipt-key.js';
import { rawEd25519PublicKey, type Secrets, signingKeysOf } from '../keys/secrets.js';
import type { Pool } from '../store/database/connect.js';
import { ensureLog, ensureMlDsaKey, findActiveLog, listLogs, publishReceiptKey } from '../store/log/logs.js';

/**
 * Creates the first log of each environment if it is missing. Throws if a log exists under another origin, or if one
 * that has not ended has a key that this process does not hold: both are fixed when the log is created. An ML-DSA-44 key
 * may be added later, and is fixed then.
 */
export async function setUpLogs(
  pool: Pool,
  logDomain: string,
  { log: keys, logMlDsa }: Pick<Secrets, 'log' | 'logMlDsa'>,
): Promise<void> {
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const origin = `${environmentName(number)}.${logDomain}`;
    const held = signingKeysOf(keys, number).map(rawEd25519PublicKey);
    const first = logs.find((log) => log.environment === number && log.epoch === 1);
    if (first === undefined) {
      await ensureLog(pool, { environment: number, epoch: 1, origin, publicKey: held[0]! });
    } else if (first.origin !== origin) {
      throw new Error(
        `LOG_DOMAIN cannot change: the log is ${first.origin}, the setting would make it ${origin}`,
      );
    }
    const signed = logs.filter((log) => log.environment === number && log.endedAt === null);
    const foreign = signed.find(({ publicKey }) => !held.some((key) => Buffer.compare(key, publicKey) === 0));
    if (foreign !== undefined) {
      throw new Error(`LOG_KEY_FILE does not hold the key that the log ${foreign.origin} was created with`);
    }
  }
  await publishReceiptKeys(pool, keys);
  if (logMlDsa !== undefined) await setUpMlDsaKeys(pool, logMlDsa);
}

async function publishReceiptKeys(pool: Pool, keys: Secrets['log']): Promise<void> {
  for (const { id, environment, origin, publicKey, receiptSpki } of await listLogs(pool)) {
    const held = signingKeysOf(keys, environment);
    const key = held.find((one) => Buffer.compare(rawEd25519PublicKey(one), publicKey) === 0);
    if (receiptSpki === null && key) await publishReceiptKey(pool, id, deriveReceiptKey(key, origin).spki);
  }
}

async function setUpMlDsaKeys(pool: Pool, keys: NonNullable<Secrets['logMlDsa']>): Promise<void> {
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const active = findActiveLog(logs, number);
    if (active === undefined) continue;
    const held = signingKeysOf(keys, number).map(({ publicKey }) => publicKey);
    const published = held.find((key) => Buffer.compare(key, active.mlDsaPublicKey ?? key) === 0) ?? held[0]!;
    if (!(await ensureMlDsaKey(pool, active.id, published))) {
      throw new Error(`LOG_ML_DSA_KEY_FILE does not hold the key that the log ${active.origin} publishes`);
    }
  }
}

/** Warns, for a process that signs checkpoints, of active logs that publish an ML-DSA-44 key which it does not have. */
export async function warnOfMissingMlDsaKey(
  { pool, log }: { pool: Pool; log: Logger },
  { logMlDsa }: Pick<Secrets, 'logMlDsa'>,
): Promise<void> {
  if (logMlDsa !== undefined) return;
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const active = findActiveLog(logs, number);
    if (active === undefined || active.mlDsaPublicKey === null) continue;
    const { origin } = active;
    log.warn({ origin }, 'checkpoints lack the ML-DSA-44 signature: set LOG_ML_DSA_KEY_FILE and restart');
  }
}
