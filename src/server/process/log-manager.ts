import { AuditAction } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { type EnvironmentName, environmentName, environmentNumber } from '../../protocol/environment.js';
import { insertOperatorEntry } from '../admin/store/audit.js';
import type { Pool } from '../database/connect.js';
import { deleteClaimsFrom } from '../idempotency/idempotency-keys.js';
import {
  compareWithRegister,
  type Register,
  RegisterError,
  registerEntry,
} from '../log/register/register.js';
import { findNewestPublishedBatch } from '../log/store/batches.js';
import { readLogSize } from '../log/store/leaves.js';
import {
  endLog,
  ensureLog,
  findActiveLog,
  type Log,
  listLogs,
  logDomain,
  logName,
} from '../log/store/logs.js';
import { ensureWitnessStates, listWitnessStates } from '../witnessing/store/witnesses.js';

/** A log's status: its size in the tables, of its newest published checkpoint, and of the register's entry. */
export type LogStatus = {
  readonly origin: string;
  readonly environment: EnvironmentName;
  /** Which of the logs beside each other, from 1. */
  readonly lane: number;
  readonly epoch: number;
  readonly leaves: number;
  readonly publishedSize: number;
  readonly registerSize: number | undefined;
  readonly state: 'ok' | 'frozen' | 'register_missing' | 'closed';
  readonly reason: string | undefined;
};

/** The raw public keys of a new epoch, where they are not those of the log before: Ed25519, and ML-DSA-44. */
type EpochKeys = { publicKey?: Uint8Array | undefined; mlDsaPublicKey?: Uint8Array | undefined };

/** `lane`: which of the logs beside each other, the first if undefined. */
type NewEpoch = EpochKeys & { lane?: number | undefined };

/** What operators do with logs. */
export type LogManager = {
  status(): Promise<readonly LogStatus[]>;
  /**
   * Starts a new epoch of the log of an environment's lane under a new origin, with the keys of the log, or others. Throws unless
   * the log is frozen or a key changes.
   */
  newEpoch(environment: EnvironmentName, options?: NewEpoch): Promise<LogStatus>;
  /**
   * Adds the newest published checkpoint of each log that has not ended where the register lacks it, or has an earlier one
   * of the same history. Throws if it cannot for some; the others are added then.
   *
   * @returns the origins of those that were added
   */
  fillRegister(): Promise<readonly string[]>;
};

/** Implements `attest log` over an open database and register. */
export function logManager(pool: Pool, register: Register): LogManager {
  return {
    status: async () => {
      const logs = await listLogs(pool);
      return Promise.all(logs.map((log) => readStatus(pool, register, logs, log)));
    },
    newEpoch: (environment, options = {}) => startEpoch(pool, register, environment, options),
    fillRegister: () => fillRegister(pool, register),
  };
}

async function readStatus(
  pool: Pool,
  register: Register,
  logs: readonly Log[],
  log: Log,
): Promise<LogStatus> {
  const comparison = await compareWithRegister(pool, register, log);
  const published = await findNewestPublishedBatch(pool, log.id);
  const closed = findActiveLog(logs, log.environment, log.lane)?.id !== log.id;
  const frozen = log.frozenAt !== null || comparison.state === 'fork';
  const state = closed ? 'closed' : frozen ? 'frozen' : 'ok';
  return {
    origin: log.origin,
    environment: environmentName(log.environment),
    lane: log.lane,
    epoch: log.epoch,
    leaves: await readLogSize(pool, log.id),
    publishedSize: published?.treeSize ?? 0,
    registerSize: comparison.state === 'missing' ? undefined : (await register.read(log.origin))?.size,
    state: state === 'ok' && comparison.state === 'missing' ? 'register_missing' : state,
    reason: log.frozenReason ?? ('reason' in comparison ? comparison.reason : undefined),
  };
}

async function startEpoch(
  pool: Pool,
  register: Register,
  environment: EnvironmentName,
  { lane = 1, ...keys }: NewEpoch,
): Promise<LogStatus> {
  const logs = await listLogs(pool);
  const number = environmentNumber(environment);
  const active = findActiveLog(logs, number, lane);
  if (active === undefined)
    throw new Error(`environment ${environment} has no log ${lane}; start the service once, with LOGS`);
  const { publicKey = active.publicKey, mlDsaPublicKey = active.mlDsaPublicKey } = keys;
  const isSame = areSame(publicKey, active.publicKey) && areSame(mlDsaPublicKey, active.mlDsaPublicKey);
  if (active.frozenAt === null && isSame) {
    throw new Error(
      `the log ${active.origin} is not frozen; a new epoch of it needs another key (--key, --ml-dsa-key)`,
    );
  }
  const { epoch, origin } = await findFreeEpoch(register, active);
  await pool.begin(async (tx) => {
    if (!(await ensureLog(tx, { environment: number, lane, epoch, origin, publicKey, mlDsaPublicKey })))
      return;
    if (active.frozenAt !== null) {
      const published = await findNewestPublishedBatch(tx, active.id);
      // Unpublished submissions of the old log must be submitted again, possibly under the same idempotency keys.
      await deleteClaimsFrom(tx, active.id, published?.treeSize ?? 0);
      await endLog(tx, active.id);
    }
    const detail = { before: active.origin, reason: active.frozenReason ?? 'another key' };
    await insertOperatorEntry(tx, AuditAction.LOG_NEW_EPOCH, origin, detail);
  });
  const all = await listLogs(pool);
  const started = findActiveLog(all, number, lane);
  if (started === undefined) throw new Error('the new epoch is missing');
  const witnesses = await listWitnessStates(pool, active.id);
  await ensureWitnessStates(
    pool,
    started.id,
    witnesses.map(({ witness }) => witness),
  );
  return readStatus(pool, register, all, started);
}

/** The next epoch that the register lacks: another database of the installation may have begun some. */
async function findFreeEpoch(register: Register, log: Log): Promise<{ epoch: number; origin: string }> {
  for (let epoch = log.epoch + 1; ; epoch++) {
    const origin = `${logName({ ...log, epoch })}.${logDomain(log)}`;
    if ((await register.read(origin)) === undefined) return { epoch, origin };
  }
}

function areSame(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === null || b === null ? a === b : Buffer.compare(a, b) === 0;
}

async function fillRegister(pool: Pool, register: Register): Promise<string[]> {
  const filled: string[] = [];
  const problems: string[] = [];
  for (const log of await listLogs(pool)) {
    if (log.endedAt !== null) continue;
    try {
      if (await fillEntry(pool, register, log)) filled.push(log.origin);
    } catch (error) {
      if (!(error instanceof RegisterError)) throw error;
      problems.push(error.message);
    }
  }
  const done = filled.length === 0 ? '' : ` (restored ${filled.join(', ')})`;
  if (problems.length > 0) throw new Error(`${problems.join('; ')}${done}`);
  return filled;
}

async function fillEntry(pool: Pool, register: Register, log: Log): Promise<boolean> {
  const entry = await register.read(log.origin);
  const published = await findNewestPublishedBatch(pool, log.id);
  if (published === undefined || (entry?.size ?? 0) >= published.treeSize) return false;
  if (entry !== undefined) {
    const comparison = await compareWithRegister(pool, register, log);
    if ('reason' in comparison) throw new RegisterError(comparison.reason);
  }
  return register.replace(entry, registerEntry(pool, log, published));
}
