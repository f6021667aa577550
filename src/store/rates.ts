import type { WindowUse } from './accept.js';
import type { Sql } from './connect.js';

/** Tokens granted, the use of the windows after it, and how long the window of a second still lasts. */
export type Grant = WindowUse & { granted: number; leftMs: number };

/** Takes up to `wanted` tokens of a key's bucket, as far as its window has room, and says how many it got. */
export async function takeTokens(
  sql: Sql,
  request: { apiKeyId: string; bucket: number; wanted: number; perSecond: number },
): Promise<Grant> {
  const [row] = await sql<Grant[]>`
    SELECT granted, left_ms AS "leftMs", second, n_second AS "nSecond", n_hour AS "nHour", n_day AS "nDay"
    FROM take_tokens(${request.apiKeyId}, ${request.bucket}::smallint, ${request.wanted}::bigint,
                     ${request.perSecond}::bigint, NULL, NULL)`;
  if (row === undefined) throw new Error('take_tokens answered nothing');
  return row;
}

/** What a key has used of a bucket in its windows up to its newest second; undefined when never used. */
export async function findUse(sql: Sql, apiKeyId: string, bucket: number): Promise<WindowUse | undefined> {
  const rows = await sql<WindowUse[]>`
    SELECT second, n_second AS "nSecond", n_hour AS "nHour", n_day AS "nDay" FROM rate_counter
    WHERE api_key_id = ${apiKeyId} AND bucket = ${bucket} ORDER BY second DESC LIMIT 1`;
  return rows[0];
}

/** A key's use on one UTC day. */
export type DayUse = { day: string; submissions: number; reads: number };

/** A key's use of the last 24 hours, to the hour, and of each of the last 30 days that has any, newest first. */
export async function readUsage(
  sql: Sql,
  apiKeyId: string,
): Promise<{ submissionsLast24h: number; readsLast24h: number; byDay: DayUse[] }> {
  const hours = await sql<{ bucket: number; n: number }[]>`
    SELECT bucket, sum(n)::bigint AS n FROM (
      SELECT bucket, max(n_hour) AS n FROM rate_counter
      WHERE api_key_id = ${apiKeyId} AND second >= extract(epoch FROM clock_timestamp())::bigint - 86400
      GROUP BY bucket, second / 3600) hour GROUP BY bucket`;
  const byDay = await sql<DayUse[]>`
    SELECT to_char(to_timestamp(day * 86400) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
           coalesce(max(n) FILTER (WHERE bucket = 2), 0) AS submissions, coalesce(max(n) FILTER (WHERE bucket = 1), 0) AS reads
    FROM (SELECT bucket, second / 86400 AS day, max(n_day) AS n FROM rate_counter
          WHERE api_key_id = ${apiKeyId} AND second >= extract(epoch FROM clock_timestamp())::bigint - 30 * 86400
          GROUP BY bucket, day) d
    GROUP BY day ORDER BY day DESC LIMIT 30`;
  const of = (bucket: number) => hours.find((row) => row.bucket === bucket)?.n ?? 0;
  return { submissionsLast24h: of(2), readsLast24h: of(1), byDay };
}

/**
 * Deletes what is no longer needed of the counters: seconds older than an hour, save the last of each hour, which
 * keeps the hour's and the day's total; everything older than 31 days.
 */
export async function pruneRateCounters(sql: Sql): Promise<void> {
  await sql`
    DELETE FROM rate_counter c
    WHERE c.second < extract(epoch FROM clock_timestamp())::bigint - 31 * 86400
       OR (c.second < extract(epoch FROM clock_timestamp())::bigint - 3600
           AND EXISTS (SELECT FROM rate_counter later
                       WHERE later.api_key_id = c.api_key_id AND later.bucket = c.bucket
                         AND later.second > c.second AND later.second / 3600 = c.second / 3600))`;
}

/** Deletes idempotency keys past their retention, at most `limit`. @returns how many */
export async function pruneIdempotencyKeys(sql: Sql, retentionMs: number, limit: number): Promise<number> {
  const result = await sql`
    DELETE FROM idempotency_key WHERE (api_key_id, key) IN (
      SELECT api_key_id, key FROM idempotency_key
      WHERE created_at < clock_timestamp() - ${retentionMs}::bigint * interval '1 millisecond'
      ORDER BY created_at LIMIT ${limit})`;
  return result.count;
}
