-- Secrets older than the previous one that still sign: a replaced secret signs for its full overlap, even if the
-- webhook is rotated again. Encrypted like `secret`; each has its own expiry.
ALTER TABLE webhook ADD COLUMN older_secrets bytea[] NOT NULL DEFAULT '{}';
ALTER TABLE webhook ADD COLUMN older_secrets_until timestamptz[] NOT NULL DEFAULT '{}';

-- History is pruned by webhook through the primary key: once new rows reuse the space of pruned ones, a BRIN index by
-- age matches the whole table.
DROP INDEX webhook_delivery_by_age;
DROP INDEX webhook_range_by_age;

-- Claims up to `p_max` due deliveries of a webhook, limited by its project's tokens: first retries, then new
-- deliveries, which it inserts from the webhook's ranges with the given ids. A claim expires after `p_visible_ms`
-- unless its attempt is recorded. Extends the lease; returns no rows if the lease is not `p_lease` any more or the
-- webhook was deleted. For a disabled webhook only test deliveries are due. While the clock is set back, no tokens are
-- added; afterwards none are missing.
--
-- Locks: the webhook, then the project's tokens; skips locked deliveries. Commits asynchronously: a claim lost in a
-- crash is repeated, and recording an attempt flushes it.
CREATE OR REPLACE FUNCTION claim_webhook_deliveries(
  p_webhook_id text, p_lease bigint, p_lease_ms bigint, p_visible_ms bigint, p_max integer, p_ids text[]
) RETURNS SETOF webhook_delivery LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_now timestamptz;
  v_webhook webhook;
  v_rate record;
  v_tokens double precision;
  v_room integer;
  v_made integer := 0;
  v_count integer;
  v_last bigint;
  r webhook_range;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE webhook w SET leased_until = clock_timestamp() + p_lease_ms * interval '1 millisecond'
    WHERE w.id = p_webhook_id AND w.lease = p_lease AND w.status <> 3 RETURNING * INTO v_webhook;
  IF NOT FOUND THEN RETURN; END IF;

  INSERT INTO webhook_tokens SELECT p.id, p.webhook_deliveries_burst, clock_timestamp()
    FROM project p WHERE p.id = v_webhook.project_id ON CONFLICT DO NOTHING;
  SELECT t.tokens, t.at, p.webhook_deliveries_per_second AS rate, p.webhook_deliveries_burst AS burst INTO v_rate
    FROM webhook_tokens t JOIN project p ON p.id = t.project_id
    WHERE t.project_id = v_webhook.project_id FOR UPDATE OF t;
  v_now := clock_timestamp();
  v_tokens := least(v_rate.burst, v_rate.tokens + greatest(0, extract(epoch FROM v_now - v_rate.at)) * v_rate.rate);
  v_room := least(p_max, floor(v_tokens)::integer);
  IF v_room < 1 THEN
    UPDATE webhook_tokens t SET at = v_now WHERE t.project_id = v_webhook.project_id AND t.at > v_now;
    RETURN;
  END IF;

  RETURN QUERY
    UPDATE webhook_delivery d
    SET attempt = d.attempt + 1, next_attempt_at = v_now + p_visible_ms * interval '1 millisecond'
    FROM (SELECT c.id FROM webhook_delivery c
          WHERE c.webhook_id = p_webhook_id AND c.status = 1 AND c.next_attempt_at <= v_now
            AND (v_webhook.status = 1 OR c.transition IS NULL)
          ORDER BY c.next_attempt_at LIMIT v_room FOR UPDATE SKIP LOCKED) due
    WHERE d.webhook_id = p_webhook_id AND d.id = due.id RETURNING d.*;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  v_tokens := v_tokens - v_count;
  v_room := v_room - v_count;

  IF v_webhook.status = 1 THEN
    FOR r IN SELECT * FROM webhook_range g WHERE g.webhook_id = p_webhook_id
             ORDER BY g.log_id, g.tree_size, g.transition LIMIT p_max LOOP
      EXIT WHEN v_room < 1;
      RETURN QUERY
        INSERT INTO webhook_delivery (webhook_id, id, submission_id, log_id, tree_size, transition, attempt,
                                      created_at, next_attempt_at)
        SELECT p_webhook_id, p_ids[v_made + s.n], s.id, r.log_id, r.tree_size, r.transition, 1,
               v_now, v_now + p_visible_ms * interval '1 millisecond'
        FROM (SELECT s.id, row_number() OVER (ORDER BY s.log_index) AS n FROM submission s
              WHERE s.project_id = v_webhook.project_id AND s.log_id = r.log_id
                AND s.log_index BETWEEN r.next_index AND r.last_index
              ORDER BY s.log_index LIMIT v_room) s
        RETURNING *;
      GET DIAGNOSTICS v_count = ROW_COUNT;
      v_made := v_made + v_count;
      v_tokens := v_tokens - v_count;
      v_room := v_room - v_count;
      IF v_room < 1 THEN
        SELECT s.log_index INTO v_last FROM submission s WHERE s.id = (
          SELECT d.submission_id FROM webhook_delivery d WHERE d.webhook_id = p_webhook_id AND d.id = p_ids[v_made]);
        UPDATE webhook_range g SET next_index = v_last + 1
          WHERE g.webhook_id = p_webhook_id AND g.log_id = r.log_id AND g.tree_size = r.tree_size
            AND g.transition = r.transition;
      ELSE
        DELETE FROM webhook_range g
          WHERE g.webhook_id = p_webhook_id AND g.log_id = r.log_id AND g.tree_size = r.tree_size
            AND g.transition = r.transition;
      END IF;
    END LOOP;
  END IF;

  UPDATE webhook_tokens t SET tokens = v_tokens, at = v_now WHERE t.project_id = v_webhook.project_id;
END $$;

-- Releases a lease and returns the milliseconds until the webhook's next delivery is due, or NULL if there is none. A
-- delivery that waits for the project's tokens is due when there is a token. Locks first, so deliveries that others add
-- concurrently are either seen here or set `due_at` afterwards.
CREATE OR REPLACE FUNCTION release_webhook(p_webhook_id text, p_lease bigint) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
  v_webhook webhook;
  v_due timestamptz;
  v_token timestamptz;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT * INTO v_webhook FROM webhook w WHERE w.id = p_webhook_id AND w.lease = p_lease FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT CASE
    WHEN v_webhook.status = 3 THEN NULL
    WHEN v_webhook.status = 1 AND (v_webhook.redeliver_since IS NOT NULL
         OR EXISTS (SELECT FROM webhook_range g WHERE g.webhook_id = p_webhook_id)) THEN clock_timestamp()
    ELSE (SELECT min(d.next_attempt_at) FROM webhook_delivery d
          WHERE d.webhook_id = p_webhook_id AND d.status = 1 AND (v_webhook.status = 1 OR d.transition IS NULL))
    END INTO v_due;
  SELECT least(t.at, clock_timestamp()) + greatest(0, (1 - t.tokens) / greatest(p.webhook_deliveries_per_second, 0.001)) * interval '1 second'
    INTO v_token FROM webhook_tokens t JOIN project p ON p.id = t.project_id WHERE t.project_id = v_webhook.project_id;
  v_due := CASE WHEN v_due IS NULL THEN NULL ELSE greatest(v_due, v_token) END;
  UPDATE webhook w SET leased_until = NULL, due_at = v_due WHERE w.id = p_webhook_id;
  RETURN extract(epoch FROM v_due - clock_timestamp()) * 1000;
END $$;
