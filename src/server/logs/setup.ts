import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { LOG_WITNESS_NAME } from '../../proof/bundle/bundle.js';
import type { CheckpointSigner } from '../../proof/log/checkpoint.js';
import { ENVIRONMENTS, environmentName } from '../../protocol/environment.js';
import type { SigningKeys } from '../keys/secrets.js';
import type { ConfiguredWitness } from '../pipeline/pipeline.js';
import type { Pool } from '../store/database/connect.js';
import { ensureLog, findActiveLog, type Log, listLogs } from '../store/log/logs.js';
import { ensurePolicy } from '../store/witnesses/policies.js';
import {
  ensureTimestampAuthority,
  retireTimestampAuthorities,
} from '../store/witnesses/timestamp-authorities.js';
import { ensureWitnessStates } from '../store/witnesses/witnesses.js';

/** A raw Ed25519 public key is the end of its SPKI. */
const RAW_ED25519_BYTES = 32;

/**
 * Adds the first log of each environment where missing. Throws when one exists under another origin or key: both are
 * fixed at the first start.
 */
export async function setUpLogs(pool: Pool, logDomain: string, keys: SigningKeys): Promise<void> {
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const origin = `${environmentName(number)}.${logDomain}`;
    const publicKey = rawPublicKey(keyOf(keys, number));
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
      throw new Error(`LOG_KEY_FILE does not hold the key that the log ${active.origin} was begun with`);
    }
  }
}

/** The signing of checkpoints by this process's keys; throws for a log that was made with another key. */
export function checkpointSigners(keys: SigningKeys): (log: Log) => CheckpointSigner {
  return (log) => {
    const key = keyOf(keys, log.environment);
    const publicKey = rawPublicKey(key);
    if (Buffer.compare(publicKey, log.publicKey) !== 0) {
      throw new Error(`LOG_KEY_FILE does not hold the key of the log ${log.origin}`);
    }
    return { publicKey, sign: (data) => sign(null, data, key) };
  };
}

/** A configured witness and, for a time-stamping authority, what the trust roots say of it. */
export type WitnessSetup = ConfiguredWitness & {
  authority?: { url: string; operator: string; certChainPem: string[] };
};

/** Makes the tables say which witnesses there are: policies, trusted chains, and a state of asking per log. */
export async function setUpWitnesses(
  pool: Pool,
  witnesses: readonly WitnessSetup[],
  deadlineMs: number,
): Promise<void> {
  for (const { witness, authority } of witnesses) {
    if (authority) await ensureTimestampAuthority(pool, { name: witness.name, ...authority });
  }
  const authorities = witnesses.filter(({ authority }) => authority !== undefined);
  await retireTimestampAuthorities(
    pool,
    authorities.map(({ witness }) => witness.name),
    deadlineMs,
  );
  const logs = await listLogs(pool);
  for (const number of ENVIRONMENTS) {
    const here = witnesses.filter(({ environments }) => environments.includes(number));
    const named = here.map(({ witness, kind, required }) => ({ name: witness.name, kind, required }));
    const log = { name: LOG_WITNESS_NAME, kind: WitnessKind.TRANSPARENCY_LOG, required: true };
    await ensurePolicy(pool, { environment: number, witnesses: [log, ...named], deadlineMs });
    for (const { id } of logs.filter(({ environment }) => environment === number)) {
      await ensureWitnessStates(
        pool,
        id,
        named.map(({ name }) => name),
      );
    }
  }
}

/** The key of an environment. */
export function keyOf(keys: SigningKeys, environment: number): KeyObject {
  return keys[environmentName(environment)];
}

function rawPublicKey(key: KeyObject): Uint8Array {
  return createPublicKey(key).export({ type: 'spki', format: 'der' }).subarray(-RAW_ED25519_BYTES);
}
