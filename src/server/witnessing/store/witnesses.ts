import type { JsonObject } from '@bufbuild/protobuf';
import { WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import type { Pool, Sql } from '../../database/connect.js';
import { type BatchRow, batchColumns } from '../../log/store/batches.js';

/** The state of the requests to one witness about one log. */
export type WitnessState = {
  logId: number;
  witness: string;
  failures: number;
  lastFailedAt: Date | null;
  lastError: string | null;
  /** A WitnessErrorClass; null also of an error that an earlier release recorded. */
  lastErrorClass: string | null;
  coversTreeSize: number;
  /** The largest size for which a request is pending. */
  requestedTreeSize: number;
};

/** The evidence of a witness for the checkpoint at `treeSize`; `kind` is a proto WitnessKind number. */
type Evidence = {
  logId: number;
  witness: string;
  treeSize: number;
  kind: number;
  evidence: Uint8Array;
  detail: JsonObject;
  landedAt: Date;
};

/** Inserts the missing states of these witnesses for a log. */
export async function ensureWitnessStates(
  sql: Sql,
  logId: number,
  witnesses: readonly string[],
): Promise<void> {
  await sql`
    INSERT INTO witness_state (log_id, witness) SELECT ${logId}, unnest(${[...witnesses]}::text[]) ON CONFLICT DO NOTHING`;
}

/** Stores evidence and ends the lease, in one transaction. Evidence is stored even if its lease has expired. */
export async function recordEvidence(
  pool: Pool,
  attempt: number,
  evidence: Omit<Evidence, 'landedAt'>,
  nextAfterMs: number,
): Promise<void> {
  const { logId, witness, treeSize } = evidence;
  await pool.begin(async (tx) => {
    await insertEvidence(tx, evidence);
    await tx`
      UPDATE witness_state SET
        covers_tree_size = greatest(covers_tree_size, ${treeSize}),
        failures = CASE WHEN attempt = ${attempt} THEN 0 ELSE failures END,
        last_error = CASE WHEN attempt = ${attempt} THEN NULL ELSE last_error END,
        leased_until = CASE WHEN attempt = ${attempt} THEN NULL ELSE leased_until END,
        next_attempt_at = CASE WHEN attempt = ${attempt}
          THEN clock_timestamp() + ${nextAfterMs}::bigint * interval '1 millisecond' ELSE next_attempt_at END
      WHERE log_id = ${logId} AND witness = ${witness}`;
  });
}

/** Stores the evidence that a pending request led to and deletes the request, in one transaction. */
export async function recordLateEvidence(pool: Pool, evidence: Omit<Evidence, 'landedAt'>): Promise<void> {
  const { logId, witness, treeSize } = evidence;
  await pool.begin(async (tx) => {
    await insertEvidence(tx, evidence);
    await tx`
      DELETE FROM witness_request WHERE log_id = ${logId} AND witness = ${witness} AND tree_size = ${treeSize}`;
    await tx`
      UPDATE witness_state SET covers_tree_size = greatest(covers_tree_size, ${treeSize})
      WHERE log_id = ${logId} AND witness = ${witness}`;
  });
}

async function insertEvidence(tx: Sql, evidence: Omit<Evidence, 'landedAt'>): Promise<void> {
  const { logId, witness, treeSize, kind, detail } = evidence;
  await tx`
    INSERT INTO evidence (log_id, witness, tree_size, kind, evidence, detail)
    VALUES (${logId}, ${witness}, ${treeSize}, ${kind}, ${evidence.evidence}, ${tx.json(detail)})
    ON CONFLICT DO NOTHING`;
}

/** Lists the states of all witnesses of a log. */
export async function listWitnessStates(sql: Sql, logId: number): Promise<WitnessState[]> {
  return sql<WitnessState[]>`
    SELECT log_id AS "logId", witness, failures, last_failed_at AS "lastFailedAt", last_error AS "lastError",
           last_error_class AS "lastErrorClass", covers_tree_size AS "coversTreeSize", requested_tree_size AS "requestedTreeSize"
    FROM witness_state WHERE log_id = ${logId} ORDER BY witness`;
}

/** Finds the newest evidence of a witness for each log that has not ended. */
export async function findNewestEvidence(
  sql: Sql,
  witness: string,
): Promise<{ origin: string; treeSize: number; evidence: Uint8Array }[]> {
  return sql<{ origin: string; treeSize: number; evidence: Uint8Array }[]>`
    SELECT l.origin, e.tree_size AS "treeSize", e.evidence
    FROM log l CROSS JOIN LATERAL (
      SELECT * FROM evidence e WHERE e.log_id = l.id AND e.witness = ${witness}
      ORDER BY e.tree_size DESC LIMIT 1) e
    WHERE l.ended_at IS NULL ORDER BY l.id`;
}

/** Evidence that covers the batch ending at `batchSize`. */
export type Covering = Evidence & { batchSize: number };

/** Lists the cosignature lines of C2SP witnesses for the checkpoint of exactly this size, in the order in which they landed. */
export async function listCosignatures(sql: Sql, logId: number, treeSize: number): Promise<Uint8Array[]> {
  const rows = await sql<{ evidence: Uint8Array }[]>`
    SELECT e.evidence FROM witness_state w
    JOIN evidence e ON e.log_id = w.log_id AND e.witness = w.witness AND e.tree_size = ${treeSize}
    WHERE w.log_id = ${logId} AND e.kind = ${WitnessKind.LOG_WITNESS}
    ORDER BY e.landed_at, e.witness`;
  return rows.map(({ evidence }) => evidence);
}

type BatchEnd = { logId: number; treeSize: number };

/** A batch, and the first evidence of each witness that covers it: with the smallest tree size at or after its end. */
export type CoveredBatch = { batch: BatchRow; evidence: Covering[] };

/** Finds the batches that end at these tree sizes, published or not, with the evidence that covers them. */
export async function findCoveredBatches(sql: Sql, batches: readonly BatchEnd[]): Promise<CoveredBatch[]> {
  const rows = await sql<(BatchRow & { covering: StoredCovering[] | null })[]>`
    SELECT ${batchColumns(sql)}, c.covering
    FROM unnest(${batches.map(({ logId }) => logId)}::integer[], ${batches.map(({ treeSize }) => treeSize)}::bigint[])
      AS p(log_id, tree_size)
    JOIN batch b ON b.log_id = p.log_id AND b.tree_size = p.tree_size
    CROSS JOIN LATERAL (
      SELECT json_agg(json_build_object(
        'witness', e.witness, 'treeSize', e.tree_size, 'kind', e.kind, 'evidence', encode(e.evidence, 'base64'),
        'detail', e.detail, 'landedAt', e.landed_at) ORDER BY e.witness) AS covering
      FROM witness_state w CROSS JOIN LATERAL (${firstEvidence(sql)}) e WHERE w.log_id = b.log_id) c`;
  return rows.map(({ covering, ...batch }) => ({
    batch,
    evidence: (covering ?? []).map((stored) => ({
      ...stored,
      logId: batch.logId,
      batchSize: batch.treeSize,
      evidence: Buffer.from(stored.evidence, 'base64'),
      landedAt: new Date(stored.landedAt),
    })),
  }));
}

/** Evidence as JSON. */
type StoredCovering = Pick<Covering, 'witness' | 'treeSize' | 'kind' | 'detail'> & {
  evidence: string;
  landedAt: string;
};

/** Lists the evidence that covers batches, as {@link findCoveredBatches} does, without its bytes. */
export async function listCoveringEvidence(
  sql: Sql,
  batches: readonly BatchEnd[],
): Promise<Omit<Covering, 'evidence'>[]> {
  return sql<Omit<Covering, 'evidence'>[]>`
    SELECT e.log_id AS "logId", e.witness, e.tree_size AS "treeSize", e.kind, e.detail, e.landed_at AS "landedAt",
           b.tree_size AS "batchSize"
    FROM unnest(${batches.map(({ logId }) => logId)}::integer[], ${batches.map(({ treeSize }) => treeSize)}::bigint[])
      AS b(log_id, tree_size)
    JOIN witness_state w ON w.log_id = b.log_id
    CROSS JOIN LATERAL (${firstEvidence(sql)}) e
    ORDER BY e.witness`;
}

/** The first evidence of a witness `w` that covers a batch `b`. */
const firstEvidence = (sql: Sql) => sql`
  SELECT * FROM evidence e WHERE e.log_id = w.log_id AND e.witness = w.witness AND e.tree_size >= b.tree_size
  ORDER BY e.tree_size LIMIT 1`;
