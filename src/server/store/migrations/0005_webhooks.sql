-- Webhooks and their deliveries. Events are not stored: they are derived from a submission and a transition of its
-- batch. A webhook's pending events are a few ranges of log indexes; a delivery gets a row when its first attempt gets
-- a token of the project.

-- Rate limit of a project's delivery attempts (token bucket): rate per second and burst.
ALTER TABLE project ADD COLUMN webhook_deliveries_per_second bigint NOT NULL DEFAULT 100;
ALTER TABLE project ADD COLUMN webhook_deliveries_burst bigint NOT NULL DEFAULT 1000;

-- A project's remaining tokens at a time; a project without a row has a full bucket.
CREATE TABLE webhook_tokens (
  project_id text COLLATE "C" PRIMARY KEY,
  tokens double precision NOT NULL,
  at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- `notified`: the transition's events are queued; transitions before this migration are not sent. `landed` and
-- `missing` are the required witnesses of a batch that became partial.
ALTER TABLE batch_transition ADD COLUMN notified boolean NOT NULL DEFAULT true;
ALTER TABLE batch_transition ALTER COLUMN notified SET DEFAULT false;
ALTER TABLE batch_transition ADD COLUMN landed text[];
ALTER TABLE batch_transition ADD COLUMN missing text[];
CREATE INDEX batch_transition_not_notified ON batch_transition (log_id, tree_size) WHERE NOT notified;

-- `secret` and `previous_secret` are encrypted. `active_since`: earlier transitions are not sent. `due_at`: when the
-- next delivery is due, NULL if there is none; set in the transaction that adds a delivery. `lease` is a fencing token:
-- one worker at a time sends. `number` is the order of lists.
CREATE TABLE webhook (
  id text COLLATE "C" PRIMARY KEY,
  number bigint GENERATED ALWAYS AS IDENTITY,
  project_id text COLLATE "C" NOT NULL REFERENCES project,
  environment smallint NOT NULL,
  url text NOT NULL,
  events smallint[] NOT NULL,
  status smallint NOT NULL DEFAULT 1,
  disabled_reason text,
  secret bytea NOT NULL,
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  active_since timestamptz NOT NULL DEFAULT clock_timestamp(),
  deleted_at timestamptz,
  failing_since timestamptz,
  redeliver_since timestamptz,
  due_at timestamptz,
  lease bigint NOT NULL DEFAULT 0,
  leased_until timestamptz
) WITH (fillfactor = 70);
CREATE INDEX webhook_by_project ON webhook (project_id, environment, number) WHERE status <> 3;
CREATE INDEX webhook_due ON webhook (due_at) WHERE due_at IS NOT NULL;

-- Submissions of the webhook's project in a batch, from `next_index`, whose events for a transition are pending.
-- `transition` is a batch status.
CREATE TABLE webhook_range (
  webhook_id text COLLATE "C" NOT NULL,
  log_id integer NOT NULL,
  tree_size bigint NOT NULL,
  transition smallint NOT NULL,
  next_index bigint NOT NULL,
  last_index bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (webhook_id, log_id, tree_size, transition)
);
CREATE INDEX webhook_range_by_age ON webhook_range USING brin (created_at);

-- Delivery of one event to one webhook. `transition` is a batch status; NULL for a test, which has no submission.
-- `attempt` counts attempts and is a fencing token; `step` counts failures in the current retry schedule. During an
-- attempt `next_attempt_at` is its expiry.
CREATE TABLE webhook_delivery (
  webhook_id text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  submission_id text COLLATE "C",
  log_id integer,
  tree_size bigint,
  transition smallint,
  status smallint NOT NULL DEFAULT 1,
  attempt integer NOT NULL DEFAULT 0,
  step smallint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  next_attempt_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  delivered_at timestamptz,
  PRIMARY KEY (webhook_id, id)
);
CREATE INDEX webhook_delivery_pending ON webhook_delivery (webhook_id, next_attempt_at) WHERE status = 1;
CREATE INDEX webhook_delivery_failed ON webhook_delivery (webhook_id, id) WHERE status = 3;
CREATE INDEX webhook_delivery_by_age ON webhook_delivery USING brin (created_at);

-- Results of attempts. `answer` is the first 2 KiB of the response body.
CREATE TABLE webhook_attempt (
  delivery_id text COLLATE "C" NOT NULL,
  number integer NOT NULL,
  at timestamptz NOT NULL,
  duration_ms integer NOT NULL,
  status_code smallint,
  error text,
  answer text,
  PRIMARY KEY (delivery_id, number)
);

-- Claims up to `p_max` due deliveries of a webhook, limited by its project's tokens: first retries, then new
-- deliveries, which it inserts from the webhook's ranges with the given ids. A claim expires after `p_visible_ms`
-- unless its attempt is recorded. Extends the lease; returns no rows if the lease is not `p_lease` any more or the
-- webhook was deleted. For a disabled webhook only test deliveries are due.
--
-- Locks: the webhook, then the project's tokens; skips locked deliveries. Commits asynchronously: a claim lost in a
-- crash is repeated, and recording an attempt flushes it.
CREATE FUNCTION claim_webhook_deliveries(
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
  v_now := greatest(clock_timestamp(), v_rate.at);
  v_tokens := least(v_rate.burst, v_rate.tokens + extract(epoch FROM v_now - v_rate.at) * v_rate.rate);
  v_room := least(p_max, floor(v_tokens)::integer);
  IF v_room < 1 THEN RETURN; END IF;

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
CREATE FUNCTION release_webhook(p_webhook_id text, p_lease bigint) RETURNS double precision LANGUAGE plpgsql AS $$
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
  SELECT t.at + greatest(0, (1 - t.tokens) / greatest(p.webhook_deliveries_per_second, 0.001)) * interval '1 second'
    INTO v_token FROM webhook_tokens t JOIN project p ON p.id = t.project_id WHERE t.project_id = v_webhook.project_id;
  v_due := CASE WHEN v_due IS NULL THEN NULL ELSE greatest(v_due, v_token) END;
  UPDATE webhook w SET leased_until = NULL, due_at = v_due WHERE w.id = p_webhook_id;
  RETURN extract(epoch FROM v_due - clock_timestamp()) * 1000;
END $$;
