import type { Sql } from '../../database/connect.js';

/** The state of a witness of the newest policy for the active log. Times are of the database's clock. */
export type WitnessHealth = {
  logId: number;
  origin: string;
  environment: number;
  witness: string;
  /** Proto WitnessKind number. */
  kind: number;
  required: boolean;
  /** The size that it covers, and the published size. */
  coversTreeSize: number;
  publishedTreeSize: number;
  lastSuccessAt: Date | null;
  failures: number;
  lastFailedAt: Date | null;
  lastError: string | null;
  /** A WitnessErrorClass; null also of an error that an earlier release recorded. */
  lastErrorClass: string | null;
  nextAttemptAt: Date;
  isAsked: boolean;
  /** The requests that it has accepted and not yet fulfilled. */
  pendingRequests: number;
  oldestRequestAt: Date | null;
};

/** Reads the state of the active logs' witnesses. Costs a few index look-ups for each. */
export async function readWitnessHealth(sql: Sql): Promise<WitnessHealth[]> {
  return sql<WitnessHealth[]>`
    SELECT l.id AS "logId", l.origin, l.environment, w.witness, named.kind, named.required,
      w.covers_tree_size AS "coversTreeSize", coalesce(published.size, 0) AS "publishedTreeSize",
      (SELECT e.landed_at FROM evidence e WHERE e.log_id = l.id AND e.witness = w.witness
       ORDER BY e.tree_size DESC LIMIT 1) AS "lastSuccessAt",
      w.failures, w.last_failed_at AS "lastFailedAt", coalesce(w.last_error, pending.last_error) AS "lastError",
      CASE WHEN w.last_error IS NULL THEN pending.last_error_class ELSE w.last_error_class END AS "lastErrorClass",
      w.next_attempt_at AS "nextAttemptAt",
      coalesce(w.leased_until > clock_timestamp(), false) AS "isAsked",
      pending.requests AS "pendingRequests", pending.oldest_at AS "oldestRequestAt"
    FROM log l
    CROSS JOIN LATERAL (
      SELECT p.witnesses FROM policy p WHERE p.environment = l.environment ORDER BY p.version DESC LIMIT 1) policy
    CROSS JOIN LATERAL jsonb_to_recordset(policy.witnesses) AS named(name text, kind smallint, required boolean)
    JOIN witness_state w ON w.log_id = l.id AND w.witness = named.name
    CROSS JOIN LATERAL (
      SELECT count(*)::integer AS requests, min(r.requested_at) AS oldest_at,
             (array_agg(r.last_error ORDER BY r.tree_size DESC) FILTER (WHERE r.last_error IS NOT NULL))[1] AS last_error,
             (array_agg(r.last_error_class ORDER BY r.tree_size DESC) FILTER (WHERE r.last_error IS NOT NULL))[1] AS last_error_class
      FROM witness_request r WHERE r.log_id = l.id AND r.witness = w.witness) pending
    LEFT JOIN LATERAL (
      SELECT b.tree_size AS size FROM batch b WHERE b.log_id = l.id AND b.registered_at IS NOT NULL
      ORDER BY b.tree_size DESC LIMIT 1) published ON true
    WHERE NOT EXISTS (SELECT FROM log n WHERE n.environment = l.environment AND n.lane = l.lane AND n.epoch > l.epoch)
    ORDER BY l.id, w.witness`;
}
