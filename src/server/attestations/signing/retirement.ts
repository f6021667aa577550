import type { Sql } from '../../database/connect.js';

/**
 * How long after a switch a leaf may still be stored that was signed with the former key. Processes learn of a switch
 * within a minute, and a request takes seconds.
 */
const IN_FLIGHT = '5 minutes';

/** How long a replaced key stays trusted after everything that it has signed was witnessed. */
const OVERLAP = '1 hour';

/** The oldest submission of a log that no witness has dated yet: a replaced key stays trusted until then. */
type UndatedLog = { origin: string; logIndex: number; since: Date };

/**
 * Lists what the replaced keys of an environment wait for: the logs with a submission that was made before a time and
 * that no evidence covers.
 */
export async function listUndated(sql: Sql, environment: number, before: Date): Promise<UndatedLog[]> {
  return sql<UndatedLog[]>`
    SELECT origin, "logIndex", since FROM (${undatedLeaves(sql)}) undated
    WHERE environment = ${environment} AND since <= ${before}::timestamptz + ${IN_FLIGHT}::interval ORDER BY origin`;
}

/**
 * Sets the end of replaced keys whose statements are all witnessed. Bundles are judged by the keys trusted at the time
 * that a witness proves, so a key ends after the last of these times. Costs a few index look-ups per log.
 *
 * @returns the ids of the keys
 */
export async function retireDsseKeys(sql: Sql): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    WITH replaced AS (
      SELECT k.id, k.environment, min(n.active_from) + ${IN_FLIGHT}::interval AS stored_by
      FROM dsse_key k JOIN dsse_key n ON n.environment = k.environment
        AND (n.active_from, n.id) > (k.active_from, k.id) AND n.active_from <= clock_timestamp()
      WHERE k.valid_to IS NULL GROUP BY k.id)
    UPDATE dsse_key k SET valid_to = greatest(clock_timestamp(), k.valid_from) + ${OVERLAP}::interval
    FROM replaced r
    WHERE k.id = r.id AND k.valid_to IS NULL AND r.stored_by < clock_timestamp()
      AND NOT EXISTS (SELECT FROM (${undatedLeaves(sql)}) u
                      WHERE u.environment = r.environment AND u.since <= r.stored_by)
    RETURNING k.id`;
  return rows.map(({ id }) => id);
}

/**
 * Ends the logs that another has replaced, once everything that they took is witnessed; a frozen one takes nothing.
 *
 * @returns their origins
 */
export async function endReplacedLogs(sql: Sql): Promise<string[]> {
  const rows = await sql<{ origin: string }[]>`
    UPDATE log SET ended_at = clock_timestamp()
    FROM (${settledSizes(sql)}) settled
    WHERE log.id = settled.id AND EXISTS (
        SELECT FROM log n WHERE n.environment = log.environment AND n.lane = log.lane AND n.epoch > log.epoch
          AND n.created_at < clock_timestamp() - ${IN_FLIGHT}::interval)
      AND (log.frozen_at IS NOT NULL
        OR NOT EXISTS (SELECT FROM submission s WHERE s.log_id = log.id AND s.log_index = settled.size))
    RETURNING log.origin`;
  return rows.map(({ origin }) => origin);
}

/**
 * Of each log the first leaf without evidence that settles its batch: what follows it is newer. Without any evidence
 * nothing proves a time, and no leaf counts.
 */
function undatedLeaves(sql: Sql) {
  return sql`
    SELECT settled.environment, settled.origin, s.log_index AS "logIndex", s.submitted_at AS since
    FROM (${settledSizes(sql)}) settled
    CROSS JOIN LATERAL (
      SELECT coalesce(max(e.tree_size), 0) AS size FROM evidence e WHERE e.log_id = settled.id) proven
    JOIN log l ON l.id = settled.id
    JOIN submission s ON s.log_id = settled.id AND s.log_index = greatest(least(proven.size, settled.size), l.archived_size)`;
}

/**
 * Of each log that has not ended, how many leaves from its start are settled. A batch counts as settled by its own
 * policy or by the newest one.
 */
function settledSizes(sql: Sql) {
  return sql`
    SELECT l.id, l.environment, l.origin, coalesce(
      (SELECT b.first_index FROM batch b
       WHERE b.log_id = l.id AND b.status <> 2 AND b.tree_size > covered.size ORDER BY b.tree_size LIMIT 1),
      (SELECT max(b.tree_size) FROM batch b WHERE b.log_id = l.id), 0) AS size
    FROM log l
    CROSS JOIN LATERAL (
      SELECT p.* FROM policy p WHERE p.environment = l.environment ORDER BY p.version DESC LIMIT 1) newest
    CROSS JOIN LATERAL (
      SELECT coalesce(min(covers), 0) AS size FROM (
        SELECT coalesce((array_agg(c.size ORDER BY c.size DESC))[n.threshold], 0) AS covers
        FROM witness_need(newest) n CROSS JOIN LATERAL (
          SELECT coalesce(max(e.tree_size), 0) AS size FROM evidence e
          WHERE e.log_id = l.id AND e.witness = n.witness) c
        GROUP BY n.need, n.threshold) needs) covered
    WHERE l.ended_at IS NULL`;
}
