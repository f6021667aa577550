import type { Sql } from '../../database/connect.js';

/** Deliveries that are due and not in flight, and how long the oldest has been due. */
export type WebhookBacklog = { due: number; oldestSeconds: number };

const MAX_WEBHOOKS = 500;
const MAX_COUNTED = 1_000;

/**
 * Reads the backlog of the active subscriptions that have been due longest: deliveries to retry, and events without
 * rows. Costs a few index look-ups per subscription and one entry per due delivery, up to a maximum of both.
 */
export async function readWebhookBacklog(sql: Sql): Promise<WebhookBacklog> {
  const [row] = await sql<WebhookBacklog[]>`
    WITH at AS MATERIALIZED (SELECT clock_timestamp() AS now),
    waiting AS (
      SELECT w.id, w.project_id FROM webhook w, at
      WHERE w.due_at <= at.now AND w.status = 1 ORDER BY w.due_at LIMIT ${MAX_WEBHOOKS}),
    counted AS (
      SELECT again.n + coalesce(first.n, 0) AS n, least(again.since, first.since) AS since
      FROM waiting w CROSS JOIN at
      CROSS JOIN LATERAL (
        SELECT count(*) AS n, min(d.next_attempt_at) AS since FROM (
          SELECT next_attempt_at FROM webhook_delivery
          WHERE webhook_id = w.id AND status = 1 AND next_attempt_at <= at.now
          ORDER BY next_attempt_at LIMIT ${MAX_COUNTED}) d) again
      CROSS JOIN LATERAL (
        SELECT sum(least(g.last_index - g.next_index + 1, c.submissions)) AS n, min(g.created_at) AS since FROM (
          SELECT * FROM webhook_range WHERE webhook_id = w.id
          ORDER BY log_id, tree_size, transition LIMIT ${MAX_COUNTED}) g
        CROSS JOIN LATERAL (
          SELECT sum(submissions) AS submissions FROM batch_content
          WHERE project_id = w.project_id AND log_id = g.log_id AND tree_size = g.tree_size) c) first)
    SELECT coalesce(sum(n), 0)::float8 AS due,
      coalesce(extract(epoch FROM (SELECT now FROM at) - min(since)), 0)::float8 AS "oldestSeconds"
    FROM counted`;
  return row ?? { due: 0, oldestSeconds: 0 };
}
