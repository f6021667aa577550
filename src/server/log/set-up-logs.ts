import { type LogLanes, ONE_LOG_EACH } from '../../config/log-lanes.js';
import { ENVIRONMENTS, environmentName } from '../../protocol/environment.js';
import type { Pool } from '../database/connect.js';
import type { HeldLogKeys } from '../keys/log-key.js';
import { signingKeysOf } from '../keys/secrets.js';
import {
  ensureLog,
  ensureMlDsaKey,
  findActiveLogs,
  listLogs,
  logName,
  publishReceiptKey,
} from './store/logs.js';

/**
 * Creates the first log of each lane if it is missing. Lanes that exist stay. Throws if a log exists under another origin, or if
 * this process holds no key of an environment's logs: both are fixed when a log is created. If it lacks the key of some, it
 * serves the others, and seals nothing of those. An ML-DSA-44 key may be added later, and is fixed then.
 */
export async function setUpLogs(
  pool: Pool,
  logDomain: string,
  { log: keys, logMlDsa }: HeldLogKeys,
  lanes: LogLanes = ONE_LOG_EACH,
): Promise<void> {
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const held = keys.filter((key) => key.environment === number).map(({ publicKey }) => publicKey);
    for (let lane = 1; lane <= lanes[environmentName(number)]; lane++) {
      const first = { environment: number, lane, epoch: 1 };
      const name = logName(first);
      const origin = `${name}.${logDomain}`;
      const known = logs.find((log) => logName(log) === name);
      if (known === undefined) {
        await ensureLog(pool, { ...first, origin, publicKey: held[0]! });
      } else if (known.origin !== origin) {
        throw new Error(
          `LOG_DOMAIN cannot change: the log is ${known.origin}, the setting would make it ${origin}`,
        );
      }
    }
    const existing = logs.filter((log) => log.environment === number);
    const isHeld = existing.some(({ publicKey }) => held.some((key) => Buffer.compare(key, publicKey) === 0));
    if (existing[0] !== undefined && !isHeld) {
      throw new Error(
        `LOG_KEY_FILE does not hold the key that the log ${existing[0].origin} was created with`,
      );
    }
  }
  await publishReceiptKeys(pool, keys);
  if (logMlDsa !== undefined) await setUpMlDsaKeys(pool, logMlDsa);
}

async function publishReceiptKeys(pool: Pool, keys: HeldLogKeys['log']): Promise<void> {
  const unpublished = (await listLogs(pool)).filter(({ receiptSpki }) => receiptSpki === null);
  for (const { id, environment, origin, publicKey } of unpublished) {
    const held = keys.filter((key) => key.environment === environment);
    const key = held.find((one) => Buffer.compare(one.publicKey, publicKey) === 0);
    const receiptKey = await key?.openReceiptKey(origin);
    if (receiptKey !== undefined) await publishReceiptKey(pool, id, receiptKey.spki);
  }
}

async function setUpMlDsaKeys(pool: Pool, keys: NonNullable<HeldLogKeys['logMlDsa']>): Promise<void> {
  for (const active of findActiveLogs(await listLogs(pool))) {
    const held = signingKeysOf(keys, active.environment).map(({ publicKey }) => publicKey);
    const published = held.find((key) => Buffer.compare(key, active.mlDsaPublicKey ?? key) === 0) ?? held[0]!;
    if (!(await ensureMlDsaKey(pool, active.id, published))) {
      throw new Error(`LOG_ML_DSA_KEY_FILE does not hold the key that the log ${active.origin} publishes`);
    }
  }
}
