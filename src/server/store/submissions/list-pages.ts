import type { Sql } from '../database/connect.js';

/** Larger than every log index. */
const LOG_END = Number.MAX_SAFE_INTEGER;

/** Returns the logs of the rest of a list, and its end in each. */
export function logsBelow(
  logIds: readonly number[],
  before: { logId: number; end: number } | undefined,
): { logIds: number[]; ends: number[] } {
  const below = logIds.filter((id) => before === undefined || id <= before.logId);
  return { logIds: below, ends: below.map((id) => (id === before?.logId ? before.end : LOG_END)) };
}

/**
 * The limit of the rows that a page is chosen from: a usual page and one more, or the largest. A constant: of a
 * parameter the planner expects a tenth of all rows.
 */
export function mostRows(sql: Sql, limit: number) {
  return limit <= 51 ? sql`51` : sql`201`;
}
