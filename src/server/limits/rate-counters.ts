import type { WindowUse } from '../core/rate-window.js';
import type { Sql } from '../database/connect.js';

/**
 * Granted tokens, the use of the key's windows afterwards, and the rest of the current second. `projectSecond`: the reads of
 * the project in this second; null without a limit of it.
 */
export type Grant = WindowUse & { granted: number; leftMs: number; projectSecond: number | null };

/** A key, and how many reads it and its project may make in a second; undefined: the project's are not limited. */
export type Reader = {
  apiKeyId: string;
  projectId: string;
  perSecond: number;
  projectPerSecond: number | undefined;
};

/** Takes up to `wanted` reads, as many as the windows of the key and of its project have room for. */
export async function takeReadTokens(sql: Sql, wanted: number, reader: Reader): Promise<Grant> {
  const { apiKeyId, projectId, perSecond, projectPerSecond = null } = reader;
  const [row] = await sql<Grant[]>`
    SELECT granted, left_ms AS "leftMs", (use).second, (use).n_second AS "nSecond", (use).n_hour AS "nHour",
           (use).n_day AS "nDay", project_second AS "projectSecond"
    FROM take_read_tokens(${apiKeyId}, ${projectId}, ${wanted}::bigint, ${perSecond}::bigint, ${projectPerSecond}::bigint)`;
  if (row === undefined) throw new Error('take_read_tokens returned no row');
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
