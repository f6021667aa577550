import type { WindowUse } from '../../core/rate-window.js';
import type { Sql } from '../database/connect.js';

/** Granted tokens, the use of the windows afterwards, and the rest of the current second. */
export type Grant = WindowUse & { granted: number; leftMs: number };

/** Takes up to `wanted` tokens of a key's bucket, as many as its window has room for. */
export async function takeTokens(
  sql: Sql,
  request: { apiKeyId: string; bucket: number; wanted: number; perSecond: number },
): Promise<Grant> {
  const [row] = await sql<Grant[]>`
    SELECT granted, left_ms AS "leftMs", second, n_second AS "nSecond", n_hour AS "nHour", n_day AS "nDay"
    FROM take_tokens(${request.apiKeyId}, ${request.bucket}::smallint, ${request.wanted}::bigint,
                     ${request.perSecond}::bigint, NULL, NULL)`;
  if (row === undefined) throw new Error('take_tokens returned no row');
  return row;
}

/** Reads a key's use of a bucket as of its newest second. Returns undefined if it was never used. */
export async function findWindowUse(
  sql: Sql,
  apiKeyId: string,
  bucket: number,
): Promise<WindowUse | undefined> {
  const rows = await sql<WindowUse[]>`
    SELECT second, n_second AS "nSecond", n_hour AS "nHour", n_day AS "nDay" FROM rate_counter
    WHERE api_key_id = ${apiKeyId} AND bucket = ${bucket} ORDER BY second DESC LIMIT 1`;
  return rows[0];
}
