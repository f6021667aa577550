-- A record that is repeated because its answer was lost does not count as another failure: the step that the attempt was
-- claimed at tells. Workers of before do not name it.
CREATE OR REPLACE FUNCTION record_webhook_attempts(p_attempts json, p_pending smallint, p_delivered smallint)
RETURNS TABLE (id text, lease bigint, failing_ms double precision)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  -- Of each attempt; NULL if a newer one was made, the delivery is not pending, or the attempt was recorded before.
  v_rows tid[];
BEGIN
  SELECT array_agg(c.row ORDER BY m.ordinality) INTO v_rows
  FROM ROWS FROM (json_to_recordset(p_attempts) AS (webhook_id text, delivery_id text, number integer, status smallint,
                                                  step integer))
    WITH ORDINALITY m
  LEFT JOIN LATERAL (
    SELECT d.ctid AS row FROM webhook_delivery d
    WHERE d.webhook_id = m.webhook_id AND d.id = m.delivery_id AND d.attempt = m.number AND d.status = p_pending
      AND (m.status = p_delivered OR d.step = coalesce(m.step, d.step))
    FOR UPDATE) c ON true;

  RETURN QUERY
  WITH made AS (
    SELECT * FROM ROWS FROM (
      json_to_recordset(p_attempts)
        AS (webhook_id text, delivery_id text, number integer, lease bigint, at timestamptz, duration_ms integer,
            status_code smallint, error text, answer text, url text, status smallint, retry_ms bigint),
      unnest(v_rows))
    AS a(webhook_id, delivery_id, number, lease, at, duration_ms, status_code, error, answer, url, status, retry_ms,
         row)),
  kept AS (
    INSERT INTO webhook_attempt
    SELECT delivery_id, number, at, duration_ms, status_code, error, answer, url FROM made ON CONFLICT DO NOTHING),
  moved AS (
    UPDATE webhook_delivery d SET
      status = m.status,
      step = CASE WHEN m.status = p_delivered THEN d.step ELSE d.step + 1 END,
      delivered_at = CASE WHEN m.status = p_delivered THEN clock_timestamp() END,
      next_attempt_at = CASE WHEN m.retry_ms IS NULL THEN d.next_attempt_at
                             ELSE clock_timestamp() + m.retry_ms * interval '1 millisecond' END
    FROM made m WHERE d.ctid = m.row
    RETURNING d.webhook_id, m.lease, d.status, d.transition),
  health AS (
    SELECT webhook_id, lease, bool_or(status = p_delivered) AS any_delivered,
      bool_or(status <> p_delivered) AS any_failed
    FROM moved WHERE transition IS NOT NULL GROUP BY webhook_id, lease),
  locked AS (
    SELECT w.id, h.any_delivered, h.any_failed FROM webhook w JOIN health h ON h.webhook_id = w.id AND h.lease = w.lease
    WHERE h.any_failed OR w.failing_since IS NOT NULL ORDER BY w.id FOR UPDATE OF w)
  UPDATE webhook w
  SET failing_since = CASE WHEN l.any_delivered THEN NULL ELSE coalesce(w.failing_since, clock_timestamp()) END
  FROM locked l WHERE w.id = l.id
  RETURNING w.id, w.lease,
    coalesce(extract(epoch FROM clock_timestamp() - w.failing_since) * 1000, 0)::double precision;
END $$;
COMMENT ON FUNCTION record_webhook_attempts IS 'Records attempts, the status of their deliveries, and whether their subscriptions are failing. An attempt that is not the newest of its delivery, or was recorded before, is stored once and changes nothing else. Tests, and attempts under an earlier lease, do not count for the endpoint''s health. Returns the subscriptions with a failure, or that had been failing, and for how long they have been without a success.
Locks: the deliveries, in the order of p_attempts, then the subscriptions, in ascending order of id.';
