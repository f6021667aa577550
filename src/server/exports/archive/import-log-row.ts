/** The row of an imported log, its projects, keys and policies, within the transaction of the import. */
import type { Sql } from '../../database/connect.js';
import { lockDsseKeys } from '../../log/store/dsse-keys.js';
import { getLog, type Log, LogLock, listLogs } from '../../log/store/logs.js';
import { coverLeaves } from '../../log/store/partitions.js';
import { ArchiveError } from './archive-error.js';
import type { LogRecord } from './log-record.js';

/** A process that still takes it for its lane's newest epoch must neither write to it nor seal it. */
const IMPORTED = 'it has ended, and was imported';

/**
 * Makes the row of a log that has ended, frozen, or takes the one that is there without leaves. Throws ArchiveError if the log is
 * there with leaves, if another has its lane and epoch, or if its lane has no later epoch, which submissions go to.
 */
export async function takeLogRow(tx: Sql, record: LogRecord): Promise<Log> {
  const { origin, environment, lane, epoch } = record;
  await tx`SELECT pg_advisory_xact_lock(hashtextextended('import of logs', 0))`;
  const logs = await listLogs(tx);
  const ofLane = logs.filter((log) => log.environment === environment && log.lane === lane);
  const known = logs.find((log) => log.origin === origin);
  const taken = ofLane.find((log) => log.epoch === epoch && log.origin !== origin);
  if (taken !== undefined)
    throw new ArchiveError(`${taken.origin} has the lane and epoch of ${origin}: it cannot be beside it`);
  if (!ofLane.some((log) => log.epoch > epoch))
    throw new ArchiveError(
      `the database has no later epoch of ${origin}: begin one with attest log new-epoch`,
    );
  if (known === undefined) {
    const id = await insertLog(tx, record);
    await coverLeaves(tx, id, record.treeSize);
    return getLog(tx, id);
  }
  await tx`SELECT pg_advisory_xact_lock(${LogLock.WRITE}, ${known.id}), pg_advisory_xact_lock(${LogLock.SEAL}, ${known.id})`;
  await assertEmpty(tx, known, record);
  await coverLeaves(tx, known.id, record.treeSize);
  await tx`
    UPDATE log SET created_at = ${record.createdAt}::timestamptz, ended_at = ${record.endedAt}::timestamptz,
      frozen_at = coalesce(frozen_at, clock_timestamp()), frozen_reason = ${IMPORTED},
      ml_dsa_public_key = decode(${record.mlDsaPublicKey}::text, 'hex'),
      receipt_spki = decode(${record.receiptSpki}::text, 'hex')
    WHERE id = ${known.id}`;
  return getLog(tx, known.id);
}

async function insertLog(tx: Sql, record: LogRecord): Promise<number> {
  const [row] = await tx<{ id: number }[]>`
    INSERT INTO log (environment, lane, epoch, origin, public_key, ml_dsa_public_key, receipt_spki, created_at, ended_at,
                     frozen_at, frozen_reason)
    VALUES (${record.environment}, ${record.lane}, ${record.epoch}, ${record.origin}, decode(${record.publicKey}::text, 'hex'),
      decode(${record.mlDsaPublicKey}::text, 'hex'), decode(${record.receiptSpki}::text, 'hex'),
      ${record.createdAt}::timestamptz, ${record.endedAt}::timestamptz, clock_timestamp(), ${IMPORTED})
    RETURNING id`;
  if (row === undefined) throw new Error('no log was inserted');
  return row.id;
}

async function assertEmpty(
  tx: Sql,
  log: Log,
  { publicKey, lane, epoch, environment }: LogRecord,
): Promise<void> {
  const [{ hasLeaves } = { hasLeaves: true }] = await tx<{ hasLeaves: boolean }[]>`
    SELECT EXISTS (SELECT FROM submission WHERE log_id = ${log.id})
        OR EXISTS (SELECT FROM batch WHERE log_id = ${log.id}) AS "hasLeaves"`;
  if (hasLeaves) throw new ArchiveError(`the database has the log ${log.origin} already, with leaves`);
  const isSame = log.lane === lane && log.epoch === epoch && log.environment === environment;
  if (!isSame || Buffer.from(log.publicKey).toString('hex') !== publicKey)
    throw new ArchiveError(`the log ${log.origin} of the database has another key, lane or epoch`);
}

/**
 * Adds the projects, the DSSE keys, and of the trust roots the witnesses and policies that the database lacks. Keys are trusted from when they were there, and no
 * longer than there, or until now. A policy of the archive gets a version before all others: none of them is in force.
 *
 * @returns the version here of each version there
 */
export async function addCompanions(tx: Sql, record: LogRecord): Promise<Map<number, number>> {
  const { environment, projects, dsseKeys } = record;
  await tx`
    INSERT INTO project (id, name, created_at)
    SELECT p.id, p.name, p."createdAt" FROM json_to_recordset(${JSON.stringify(projects)}::text::json)
      AS p(id text, name text, "createdAt" timestamptz)
    ON CONFLICT (id) DO NOTHING`;
  await lockDsseKeys(tx);
  await tx`
    INSERT INTO dsse_key (environment, spki, valid_from, valid_to, active_from)
    SELECT ${environment}, decode(k.spki, 'hex'), k."validFrom", coalesce(k."validTo", clock_timestamp()), NULL
    FROM json_to_recordset(${JSON.stringify(dsseKeys)}::text::json)
      AS k(spki text, "validFrom" timestamptz, "validTo" timestamptz)
    ON CONFLICT (spki) DO UPDATE SET valid_from = least(dsse_key.valid_from, excluded.valid_from)`;
  await addTrusted(tx, record);
  return addPolicies(tx, record);
}

/** Verifiers trust the witnesses of the archive from when they did there, and no longer than there, or until now. */
async function addTrusted(tx: Sql, { authorities, witnesses }: LogRecord): Promise<void> {
  await tx`
    WITH given AS MATERIALIZED (
      SELECT * FROM json_to_recordset(${JSON.stringify(authorities)}::text::json) AS g(
        name text, url text, operator text, "certChainPem" text[], "validFrom" timestamptz, "validTo" timestamptz)
    ), known AS (
      UPDATE timestamp_authority a SET valid_from = least(a.valid_from, g."validFrom") FROM given g
      WHERE a.name = g.name AND a.cert_chain_pem = g."certChainPem" RETURNING a.name, a.cert_chain_pem)
    INSERT INTO timestamp_authority (name, url, operator, cert_chain_pem, valid_from, valid_to)
    SELECT g.name, g.url, g.operator, g."certChainPem", g."validFrom", coalesce(g."validTo", clock_timestamp()) FROM given g
    WHERE NOT EXISTS (SELECT FROM known k WHERE k.name = g.name AND k.cert_chain_pem = g."certChainPem")`;
  await tx`
    WITH given AS MATERIALIZED (
      SELECT * FROM json_to_recordset(${JSON.stringify(witnesses)}::text::json) AS g(
        name text, identity jsonb, "validFrom" timestamptz, "validTo" timestamptz)
    ), known AS (
      UPDATE trusted_witness w SET valid_from = least(w.valid_from, g."validFrom") FROM given g
      WHERE w.name = g.name AND w.identity = g.identity RETURNING w.name, w.identity)
    INSERT INTO trusted_witness (name, identity, valid_from, valid_to)
    SELECT g.name, g.identity, g."validFrom", coalesce(g."validTo", clock_timestamp()) FROM given g
    WHERE NOT EXISTS (SELECT FROM known k WHERE k.name = g.name AND k.identity = g.identity)`;
}

async function addPolicies(tx: Sql, { environment, policies }: LogRecord): Promise<Map<number, number>> {
  const versions = new Map<number, number>();
  await tx`SELECT pg_advisory_xact_lock(hashtextextended('policy', ${environment}))`;
  for (const policy of [...policies].sort((a, b) => b.version - a.version)) {
    const [row] = await tx<{ version: number }[]>`
      WITH given AS (
        SELECT ${JSON.stringify(policy.witnesses)}::text::jsonb AS witnesses,
               ${JSON.stringify(policy.quorums)}::text::jsonb AS quorums, ${policy.deadlineMs}::bigint AS deadline_ms,
               ${policy.createdAt}::timestamptz AS created_at
      ), known AS (
        SELECT p.version FROM policy p, given g
        WHERE p.environment = ${environment} AND p.witnesses = g.witnesses AND p.quorums = g.quorums
          AND p.deadline_ms = g.deadline_ms AND p.created_at <= g.created_at ORDER BY p.version DESC LIMIT 1
      ), added AS (
        INSERT INTO policy (environment, version, witnesses, quorums, deadline_ms, created_at)
        SELECT ${environment}, (SELECT least(min(p.version), 1) - 1 FROM policy p WHERE p.environment = ${environment}), g.*
        FROM given g WHERE NOT EXISTS (SELECT FROM known) RETURNING version)
      SELECT version FROM known UNION ALL SELECT version FROM added`;
    if (row !== undefined) versions.set(policy.version, row.version);
  }
  return versions;
}
