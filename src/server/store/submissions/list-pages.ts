import type { Sql } from '../database/connect.js';

/** Behind the last place of every log. */
const LOG_END = Number.MAX_SAFE_INTEGER;

/** The logs that the rest of a list is in, and where in each it ends. */
export function logsBelow(
  logIds: readonly number[],
  before: { logId: number; end: number } | undefined,
): { logIds: number[]; ends: number[] } {
  const below = logIds.filter((id) => before === undefined || id <= before.logId);
  return { logIds: below, ends: below.map((id) => (id === before?.logId ? before.end : LOG_END)) };
}

/**
 * The limit of what a page is chosen from: the usual page and one more, or the largest. A constant, because of a
 * parameter the planner expects a tenth of all rows.
 */
export function mostRows(sql: Sql, limit: number) {
  return limit <= 51 ? sql`51` : sql`201`;
}
