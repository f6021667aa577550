-- Deliveries are claimed, and attempts recorded, by the rows that were locked. A plan that was made while the table was small
-- joined them with all deliveries of the subscription, and read those at every call until the table was analysed: the first
-- 20,000 deliveries took Postgres 970 µs each, and 120 so.
CREATE OR REPLACE FUNCTION record_webhook_attempts(p_attempts json, p_pending smallint, p_delivered smallint)
RETURNS TABLE (id text, lease bigint, failing_ms double precision)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH made AS (
    SELECT * FROM json_to_recordset(p_attempts)
    AS a(webhook_id text, delivery_id text, number integer, lease bigint, at timestamptz, duration_ms integer,
         status_code smallint, error text, answer text, url text, status smallint, retry_ms bigint)),
  kept AS (
    INSERT INTO webhook_attempt
    SELECT delivery_id, number, at, duration_ms, status_code, error, answer, url FROM made ON CONFLICT DO NOTHING),
  newest AS (
    SELECT c.row, m.* FROM made m CROSS JOIN LATERAL (
      SELECT c.ctid AS row FROM webhook_delivery c
      WHERE c.webhook_id = m.webhook_id AND c.id = m.delivery_id AND c.attempt = m.number AND c.status = p_pending
      FOR UPDATE) c),
  moved AS (
    UPDATE webhook_delivery d SET
      status = m.status,
      step = CASE WHEN m.status = p_delivered THEN d.step ELSE d.step + 1 END,
      delivered_at = CASE WHEN m.status = p_delivered THEN clock_timestamp() END,
      next_attempt_at = CASE WHEN m.retry_ms IS NULL THEN d.next_attempt_at
                             ELSE clock_timestamp() + m.retry_ms * interval '1 millisecond' END
    FROM newest m WHERE d.ctid = m.row
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

CREATE OR REPLACE FUNCTION claim_webhook_deliveries(p_webhook_id text, p_lease bigint, p_lease_ms bigint, p_visible_ms bigint, p_max integer, p_ids text[])
 RETURNS SETOF webhook_delivery
 LANGUAGE plpgsql
 ROWS 32
 SET enable_seqscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
DECLARE
  v_webhook webhook;
  v_tokens double precision;
  v_now timestamptz;
  v_room integer;
  v_claimed integer;
  v_made integer := 0;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE webhook w SET leased_until = clock_timestamp() + p_lease_ms * interval '1 millisecond'
    WHERE w.id = p_webhook_id AND w.lease = p_lease AND w.status <> 3 RETURNING * INTO v_webhook;
  IF NOT FOUND THEN RETURN; END IF;

  SELECT l.tokens, l.locked_at INTO v_tokens, v_now FROM lock_webhook_tokens(v_webhook.project_id) l;
  v_room := least(p_max, floor(v_tokens)::integer);
  IF v_room < 1 THEN
    UPDATE webhook_tokens t SET at = v_now WHERE t.project_id = v_webhook.project_id AND t.at > v_now;
    RETURN;
  END IF;

  RETURN QUERY
    UPDATE webhook_delivery d
    SET attempt = d.attempt + 1, next_attempt_at = v_now + p_visible_ms * interval '1 millisecond'
    FROM (SELECT c.ctid AS row FROM webhook_delivery c
          WHERE c.webhook_id = p_webhook_id AND c.status = 1 AND c.next_attempt_at <= v_now
            AND (v_webhook.status = 1 OR c.transition IS NULL)
          ORDER BY c.next_attempt_at LIMIT v_room FOR UPDATE SKIP LOCKED) due
    WHERE d.ctid = due.row RETURNING d.*;
  GET DIAGNOSTICS v_claimed = ROW_COUNT;

  IF v_webhook.status = 1 AND v_claimed < v_room THEN
    RETURN QUERY SELECT * FROM make_webhook_deliveries(
      p_webhook_id, v_webhook.project_id, v_now, p_visible_ms, v_room - v_claimed, p_ids);
    GET DIAGNOSTICS v_made = ROW_COUNT;
  END IF;

  UPDATE webhook_tokens t SET tokens = v_tokens - v_claimed - v_made, at = v_now
    WHERE t.project_id = v_webhook.project_id;
END $function$;
