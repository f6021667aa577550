import { ulid } from 'ulid';
import { AuditAction, AuditActorKind } from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { environmentName } from '../../../protocol/environment.js';
import { insertAuditEntry } from '../../admin/store/audit.js';
import type { Pool, Sql } from '../../database/connect.js';

/**
 * A log of one environment, lane and epoch. `publicKey` is the raw Ed25519 key, `mlDsaPublicKey` the ML-DSA-44 key,
 * `receiptSpki` the ES256 key of its receipts in DER. `closedAt` is when the next epoch began; `endedAt` is when nothing more was to come of it after that.
 */
export type Log = {
  id: number;
  environment: number;
  /** Which of the logs beside each other, from 1. */
  lane: number;
  epoch: number;
  origin: string;
  publicKey: Uint8Array;
  mlDsaPublicKey: Uint8Array | null;
  receiptSpki: Uint8Array | null;
  createdAt: Date;
  closedAt: Date | null;
  endedAt: Date | null;
  frozenAt: Date | null;
  frozenReason: string | null;
  /** The leaves below have no rows any more: a multiple of 256, or all of a log that has ended. */
  archivedSize: number;
};

/** Advisory lock classes; the second number is the log's id. `WRITE` is taken by `append_submissions` as well. */
export const LogLock = { WRITE: 1, SEAL: 2, ARTIFACTS: 3, STORE: 4 } as const;

/** Lists all logs, oldest first. */
export async function listLogs(sql: Sql): Promise<Log[]> {
  return sql<Log[]>`
    SELECT id, environment, lane, epoch, origin, public_key AS "publicKey", ml_dsa_public_key AS "mlDsaPublicKey",
           receipt_spki AS "receiptSpki",
           created_at AS "createdAt", ended_at AS "endedAt",
           lead(created_at) OVER (PARTITION BY environment, lane ORDER BY epoch) AS "closedAt",
           frozen_at AS "frozenAt", frozen_reason AS "frozenReason",
           archived_size AS "archivedSize"
    FROM log ORDER BY id`;
}

/** Reads a log. Throws if the id is unknown. */
export async function getLog(sql: Sql, id: number): Promise<Log> {
  const log = (await listLogs(sql)).find((candidate) => candidate.id === id);
  if (log === undefined) throw new Error(`there is no log ${id}`);
  return log;
}

/** Finds the log that a lane of an environment writes to: its newest epoch. */
export function findActiveLog(logs: readonly Log[], environment: number, lane = 1): Log | undefined {
  let newest: Log | undefined;
  for (const log of logs)
    if (log.environment === environment && log.lane === lane && log.epoch > (newest?.epoch ?? -1))
      newest = log;
  return newest;
}

/** The newest epoch of each lane. */
export function findActiveLogs(logs: readonly Log[]): Log[] {
  return logs.filter((log) => findActiveLog(logs, log.environment, log.lane)?.id === log.id);
}

/**
 * A log's name, its path below `{verify_url}/log/` and the first part of its origin: the environment, the lane from the
 * second on after a dot, and the epoch from the second on after a hyphen.
 */
export function logName({ environment, lane, epoch }: Pick<Log, 'environment' | 'lane' | 'epoch'>): string {
  return `${environmentName(environment)}${lane === 1 ? '' : `.${lane}`}${epoch === 1 ? '' : `-${epoch}`}`;
}

/** The domain of a log's origin. */
export function logDomain(log: Pick<Log, 'environment' | 'lane' | 'epoch' | 'origin'>): string {
  return log.origin.slice(logName(log).length + 1);
}

/** Records that nothing more is to come of a log, from the time of the transaction on, as for the log that it starts. */
export async function endLog(sql: Sql, id: number): Promise<void> {
  await sql`UPDATE log SET ended_at = now() WHERE id = ${id} AND ended_at IS NULL`;
}

/** A log to insert; of the first lane if none is named. */
type NewLog = Pick<Log, 'environment' | 'epoch' | 'origin' | 'publicKey'> &
  Partial<Pick<Log, 'lane' | 'mlDsaPublicKey'>>;

/** Inserts the log of a lane's epoch unless it exists. @returns whether it was inserted */
export async function ensureLog(sql: Sql, { lane = 1, ...log }: NewLog): Promise<boolean> {
  const added = await sql`
    INSERT INTO log (environment, lane, epoch, origin, public_key, ml_dsa_public_key)
    VALUES (${log.environment}, ${lane}, ${log.epoch}, ${log.origin}, ${log.publicKey},
            ${log.mlDsaPublicKey ?? null})
    ON CONFLICT DO NOTHING RETURNING id`;
  return added.length > 0;
}

/** Publishes the key of a log's receipts, which never changes, unless the log has one. @returns whether it is the log's key */
export async function publishReceiptKey(sql: Sql, id: number, spki: Uint8Array): Promise<boolean> {
  await sql`UPDATE log SET receipt_spki = ${spki} WHERE id = ${id} AND receipt_spki IS NULL`;
  const { receiptSpki } = await getLog(sql, id);
  return receiptSpki !== null && Buffer.compare(receiptSpki, spki) === 0;
}

/** Makes this the ML-DSA-44 key of a log unless it has one. @returns whether it is the log's key */
export async function ensureMlDsaKey(sql: Sql, id: number, publicKey: Uint8Array): Promise<boolean> {
  await sql`UPDATE log SET ml_dsa_public_key = ${publicKey} WHERE id = ${id} AND ml_dsa_public_key IS NULL`;
  const { mlDsaPublicKey } = await getLog(sql, id);
  return mlDsaPublicKey !== null && Buffer.compare(mlDsaPublicKey, publicKey) === 0;
}

/**
 * Freezes a log permanently: after the commit nothing is written to it and nothing is signed. Waits for running writes.
 * Stores the first reason, in the audit log too.
 *
 * @param reason the reason, or a function that finds it on the connection that freezes: another connection may read
 *   from a standby that lags behind. Nothing is frozen if it returns undefined
 * @returns whether this call froze the log
 */
export async function freezeLog(
  pool: Pool,
  id: number,
  reason: string | ((tx: Sql) => Promise<string | undefined>),
): Promise<boolean> {
  return pool.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${LogLock.WRITE}, ${id})`;
    const found = typeof reason === 'string' ? reason : await reason(tx);
    if (found === undefined) return false;
    const [frozen] = await tx<{ origin: string }[]>`
      UPDATE log SET frozen_at = clock_timestamp(), frozen_reason = ${found}
      WHERE id = ${id} AND frozen_at IS NULL RETURNING origin`;
    if (frozen === undefined) return false;
    await insertAuditEntry(tx, {
      id: `aud_${ulid()}`,
      projectId: null,
      actorKind: AuditActorKind.SYSTEM,
      actorId: 'register',
      action: AuditAction.LOG_FROZEN,
      resourceId: frozen.origin,
      requestId: null,
      detail: { reason: found },
    });
    return true;
  });
}
