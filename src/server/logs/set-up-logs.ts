import { ENVIRONMENTS, environmentName } from '../../protocol/environment.js';
import { rawEd25519PublicKey, type Secrets, signingKeyOf } from '../keys/secrets.js';
import type { Pool } from '../store/database/connect.js';
import { ensureLog, ensureMlDsaKey, findActiveLog, listLogs } from '../store/log/logs.js';

/**
 * Creates the first log of each environment if it is missing. Throws if a log exists under another origin or key: both
 * are fixed at the first start. An ML-DSA-44 key may be added later, and is fixed then.
 */
export async function setUpLogs(
  pool: Pool,
  logDomain: string,
  { log: keys, logMlDsa }: Pick<Secrets, 'log' | 'logMlDsa'>,
): Promise<void> {
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const origin = `${environmentName(number)}.${logDomain}`;
    const publicKey = rawEd25519PublicKey(signingKeyOf(keys, number));
    const first = logs.find((log) => log.environment === number && log.epoch === 1);
    if (first === undefined) {
      await ensureLog(pool, { environment: number, epoch: 1, origin, publicKey });
    } else if (first.origin !== origin) {
      throw new Error(
        `LOG_DOMAIN cannot change: the log is ${first.origin}, the setting would make it ${origin}`,
      );
    }
    const active = findActiveLog(logs, number);
    if (active !== undefined && Buffer.compare(active.publicKey, publicKey) !== 0) {
      throw new Error(`LOG_KEY_FILE does not hold the key that the log ${active.origin} was created with`);
    }
  }
  if (logMlDsa !== undefined) await setUpMlDsaKeys(pool, logMlDsa);
}

async function setUpMlDsaKeys(pool: Pool, keys: NonNullable<Secrets['logMlDsa']>): Promise<void> {
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const active = findActiveLog(logs, number);
    const { publicKey } = keys[environmentName(number)];
    if (active !== undefined && !(await ensureMlDsaKey(pool, active.id, publicKey))) {
      throw new Error(`LOG_ML_DSA_KEY_FILE does not hold the key that the log ${active.origin} publishes`);
    }
  }
}
