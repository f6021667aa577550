import type { Pool, Sql } from '../../database/connect.js';

/** The usage of one window of 1, 3600 or 86400 seconds that starts at `started` (seconds since the epoch). */
export type WindowUsage = { windowSeconds: number; started: number; submissions: number; reads: number };

/** The owner of usage: one key or trust rule, or all of a project. */
export type UsageOwner = { apiKeyId: string } | { projectId: string };

/** Windows of one length that start at `since` or later. Those of one second reach back a minute at most. */
export type UsageSpan = { windowSeconds: 1 | 3600 | 86400; since: number };

/** Reads the usage of the windows of these spans, newest first, without empty windows. Reads only counters. */
export async function readUsage(
  sql: Sql,
  owner: UsageOwner,
  spans: readonly UsageSpan[],
): Promise<WindowUsage[]> {
  const isOwn =
    'apiKeyId' in owner
      ? sql`c.api_key_id = ${owner.apiKeyId}`
      : sql`c.api_key_id IN (SELECT id FROM api_key WHERE project_id = ${owner.projectId}
                              UNION ALL SELECT id FROM trust_rule WHERE project_id = ${owner.projectId})`;
  return sql<WindowUsage[]>`
    SELECT seconds AS "windowSeconds", started,
           coalesce(sum(n) FILTER (WHERE bucket = 2), 0)::bigint AS submissions,
           coalesce(sum(n) FILTER (WHERE bucket = 1), 0)::bigint AS reads
    FROM (
      SELECT w.seconds, u.started, u.bucket, max(u.n) AS n
      FROM unnest(${spans.map(({ windowSeconds }) => windowSeconds)}::bigint[],
                  ${spans.map(({ since }) => since)}::bigint[]) AS w(seconds, since)
      CROSS JOIN LATERAL (
        SELECT c.api_key_id, c.bucket, c.started, c.n FROM usage_counter c
        WHERE ${isOwn} AND c.window_seconds = w.seconds AND c.started >= w.since
        UNION ALL
        SELECT c.api_key_id, c.bucket, c.second / w.seconds * w.seconds,
               CASE w.seconds WHEN 1 THEN c.n_second WHEN 3600 THEN c.n_hour ELSE c.n_day END
        FROM rate_counter c WHERE ${isOwn} AND c.second >= w.since
      ) u GROUP BY w.seconds, u.api_key_id, u.started, u.bucket
    ) windows GROUP BY seconds, started ORDER BY seconds, started DESC`;
}

/** Retention of windows in days: hours for 8 days, days for 90. */
const KEPT_DAYS = { hours: 8, days: 90 } as const;

/**
 * Moves counters that no rate window needs to `usage_counter`: those older than two minutes except each key's newest,
 * and those older than two days. Idempotent, since a window's counter only grows. Moves at most `limit` rows. Returns
 * at once if another caller is running it.
 *
 * @returns the number of rows moved
 */
export async function rollUpUsage(pool: Pool, limit: number): Promise<number> {
  return pool.begin(async (tx) => {
    const [lock] = await tx<{ mine: boolean }[]>`
      SELECT pg_try_advisory_xact_lock(hashtextextended('attestation-service usage', 0)) AS mine`;
    if (lock?.mine !== true) return 0;
    const [row] = await tx<{ moved: number }[]>`
      WITH moved AS (
        DELETE FROM rate_counter WHERE ctid = ANY (ARRAY(
          SELECT c.ctid FROM rate_counter c
          WHERE c.second < extract(epoch FROM clock_timestamp())::bigint - 120
            AND (c.second < extract(epoch FROM clock_timestamp())::bigint - 2 * 86400
                 OR EXISTS (SELECT FROM rate_counter later WHERE later.api_key_id = c.api_key_id
                            AND later.bucket = c.bucket AND later.second > c.second))
          LIMIT ${limit}))
        RETURNING api_key_id, bucket, second, n_hour, n_day
      ), added AS (
        INSERT INTO usage_counter (api_key_id, window_seconds, started, bucket, n)
        SELECT m.api_key_id, w.seconds, m.second / w.seconds * w.seconds, m.bucket,
               max(CASE w.seconds WHEN 3600 THEN m.n_hour ELSE m.n_day END)
        FROM moved m CROSS JOIN (VALUES (3600), (86400)) AS w(seconds) GROUP BY 1, 2, 3, 4
        ON CONFLICT ON CONSTRAINT usage_counter_pkey DO UPDATE SET n = greatest(usage_counter.n, excluded.n)
      )
      SELECT count(*) AS moved FROM moved`;
    return row?.moved ?? 0;
  });
}

/** Deletes the usage of expired windows. */
export async function pruneUsage(sql: Sql): Promise<void> {
  const { hours, days } = KEPT_DAYS;
  await sql`
    DELETE FROM usage_counter WHERE
      (window_seconds = 3600 AND started < extract(epoch FROM clock_timestamp())::bigint - ${hours}::bigint * 86400)
      OR (window_seconds = 86400 AND started < extract(epoch FROM clock_timestamp())::bigint - ${days}::bigint * 86400)`;
}
