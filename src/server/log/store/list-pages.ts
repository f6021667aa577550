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
 * The limit of the rows that a page is chosen from: a usual page and one more, or the largest. A constant in
 * the statement's text: of a parameter the planner expects a tenth of all rows.
 */
export function mostRows(limit: number): number {
  return limit <= 51 ? 51 : 201;
}
